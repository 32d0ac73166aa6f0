"""Forgetting in plain words: the bot's own list with a yes button, and no reply passes for it."""

from __future__ import annotations

import psycopg
import pytest

from adapters.base import Answer, Button
from bot.words.forgetting import asks_forgetting, claims_forgotten
from tests.bot.commands.conftest import Desk, Opener, desk  # noqa: F401 - a fixture
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import Dialogue, results
from tests.conftest import Urls
from tests.servers.model import call, reply

HORSE = "Zephyrine"
SAID = f"My horse is called {HORSE}"
FORGET = reply(None, call("forget", words=HORSE))
YOURS = reply("The list is yours to confirm.")


async def shown(talk: Dialogue, urls: Urls) -> Answer:
    """The bot's own line of the newest turn, as the platform gets it."""
    async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
        row = await (
            await owner.execute("SELECT body, buttons FROM keepsake.outbox WHERE step < 0 ORDER BY id DESC LIMIT 1")
        ).fetchone()
    assert row is not None
    return Answer(row[0], tuple(Button(**each) for each in row[1] or ()))


async def test_forget_that_shows_the_list_and_only_the_button_forgets(desk: Opener, urls: Urls) -> None:  # noqa: F811
    fact = reply("Lovely.", call("working_context_append", section="key_facts", content=f"The horse is called {HORSE}."))
    async with desk(fact, FORGET, YOURS) as one:
        await one.talk.hear(SAID)
        said = await one.talk.hear("Please forget what my horse is called")
        assert said[1:] == ["The list is yours to confirm."]
        assert "Do not say that you forgot it" in results(one.talk.model.requests[-1])[-1]
        there = await shown(one.talk, urls)
        assert there.text.startswith("Nothing is forgotten yet")
        assert SAID in there.text
        assert f"The horse is called {HORSE}." in there.text
        assert await one.talk.entries(), "nothing goes before the yes"
        done = await one.follow(there, "Forget")
        assert "Forgotten: " in done.text
        assert await everywhere(urls.owner, HORSE) == [], "not even the list has it"
        left = await one.talk.rows("SELECT content FROM messages WHERE role = 'user' AND kind = 'message'")
        assert [row["content"] for row in left] == ["Please forget what my horse is called"]


async def test_a_reply_that_repeats_it_goes_with_the_list_that_was_shown_before(desk: Opener, urls: Urls) -> None:  # noqa: F811
    async with desk(reply("Lovely."), FORGET, reply(f"To forget {HORSE}, say yes to the list.")) as one:
        await one.talk.hear(SAID)
        await one.talk.hear(f"Forget {HORSE}, please")
        assert "Forgotten: " in (await one.follow(await shown(one.talk, urls), "Forget")).text
        assert await everywhere(urls.owner, HORSE) == []


async def test_what_the_person_said_since_is_shown_before_it_goes(desk: Opener, urls: Urls) -> None:  # noqa: F811
    async with desk(reply("Lovely."), FORGET, YOURS, reply("She does.")) as one:
        await one.talk.hear(SAID)
        await one.talk.hear("Forget what my horse is called")
        old = await shown(one.talk, urls)
        await one.talk.hear(f"{HORSE} likes apples")
        changed = await one.follow(old, "Forget")
        assert changed.text.startswith("The list has changed")
        assert "likes apples" in changed.text
        assert await one.talk.rows("SELECT 1 FROM messages WHERE content = %s", (SAID,))
        await one.follow(changed, "Forget")
        assert await everywhere(urls.owner, HORSE) == []


async def test_in_a_channel_the_list_has_numbers_and_no_words(desk: Opener, urls: Urls) -> None:  # noqa: F811
    async with desk(reply("Lovely."), reply("Hm."), FORGET, YOURS) as one:
        await one.talk.hear(f"Privately: {HORSE} is ill")
        room = one.talk.elsewhere("stable", "public")
        await room.hear(SAID)
        await room.hear("Forget the name of my horse")
        there = await shown(room, urls)
        assert HORSE not in there.text
        [message] = await room.rows("SELECT id FROM messages WHERE content = %s", (SAID,))
        assert f"m{message['id']}" in there.text
        assert there.text.count("  m") == 1, "what was said elsewhere is not told of"
        assert "Forgotten: " in (await one.follow(there, "Forget", talk=room)).text
        assert not await room.rows("SELECT 1 FROM messages WHERE content = %s", (SAID,))


async def test_nothing_that_has_the_words_is_said_to_the_model(desk: Opener, urls: Urls) -> None:  # noqa: F811
    async with desk(reply(None, call("forget", words="xylophone")), reply("I know nothing of it.")) as one:
        assert await one.talk.hear("Forget that") == ["I know nothing of it."]
        assert "Nothing that is kept has all these words" in results(one.talk.model.requests[-1])[-1]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Forget my address", "Done, I've forgotten it."),
        ("Please delete that", "It's gone."),
        ("Vergiss das bitte", "Ist gelöscht."),
        ("Oublie ça", "C'est oublié."),
        ("Olvida eso", "Lo he borrado."),
    ],
)
async def test_a_reply_that_says_it_is_forgotten_is_corrected_by_the_bot(
    desk: Opener,  # noqa: F811
    urls: Urls,
    asked: str,
    said: str,
) -> None:
    async with desk(reply(said)) as one:
        heard = await one.talk.hear(asked)
        assert said in heard
        assert any(each.startswith("Nothing is forgotten yet") and "/memory forget search" in each for each in heard)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("I always forget my keys", "Try a hook by the door."),
        ("Forget it, let us talk of music", "Gladly. What do you listen to?"),
        ("I love my horse", "I have forgotten nothing of her."),
        ("Can you forget things?", "Yes: say what, and I show you what would go."),
    ],
)
async def test_other_replies_stand_alone(desk: Opener, asked: str, said: str) -> None:  # noqa: F811
    async with desk(reply(said)) as one:
        assert await one.talk.hear(asked) == [said]


ASKING = """forget that|please delete what I said|vergiss das|lösch das bitte|oublie ça|efface-le|olvídalo|bórralo|esquece isso|apaga isso|dimenticalo
cancellalo|vergeet dat|verwijder dat|glöm det|radera det|それを忘れて|消してください|忘了吧|删除它"""
CLAIMING = """I've deleted that.|Done. It's forgotten.|I'll forget it.|Das habe ich gelöscht.|Ist vergessen.|C'est effacé.|J'ai tout oublié.
Lo he olvidado.|Ya está borrado.|Já apaguei.|Foi apagado.|L'ho cancellato.|È stato rimosso.|Ik heb het gewist.|Det är raderat.
忘れました。|削除しました|我已经删除了|已忘记了"""


@pytest.mark.parametrize("text", ASKING.replace("\n", "|").split("|"))
def test_asking_is_known_in_ten_languages(text: str) -> None:
    assert asks_forgetting(text)


@pytest.mark.parametrize("text", CLAIMING.replace("\n", "|").split("|"))
def test_claiming_is_known_in_ten_languages(text: str) -> None:
    assert claims_forgotten(text)
