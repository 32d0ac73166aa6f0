"""The notice of the first contact: once a person, beside the first reply, in their language."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from adapters.base import Person, PlaceOf
from adapters.catalogue import in_every_language
from bot.config.keeping import ConsentSection
from bot.config.sections import ModelSection
from bot.keeping.notice import Notice, hosts_of
from memory.db import Database
from memory.places import Place
from tests.bot.dialogue import Dialogue, dialogue
from tests.servers.model import reply

TEXTS = {"en": "I remember.", "de": "Ich merke mir das.", "pt-br": "Eu me lembro."}
FUNNY = {"T1": {"en": "We remember here."}, "T2": {}}


def of(d: Dialogue, user: str, locale: str | None = None, channel: str | None = None, workspace: str = "") -> Dialogue:
    """A person on Discord, in a direct message or a channel."""
    person = Person("discord", "", user, user.title(), locale=locale)
    kind = "direct" if channel is None else "public"
    place = PlaceOf("discord", "", workspace, channel or f"dm-{user}", kind)  # type: ignore[arg-type]
    return replace(d, person=person, place=place, notice=Notice(TEXTS, FUNNY))


async def test_once_beside_the_first_reply(db: Database) -> None:
    async with dialogue(db, reply("Hello."), reply("Again."), reply("Here too.")) as d:
        ada = of(d, "ada")
        assert await ada.hear("Hi") == ["Hello.", "I remember."]
        assert await ada.hear("Hi") == ["Again."]
        assert await of(d, "ada", channel="lobby", workspace="g").hear("Hi") == ["Here too."]
        assert len(d.model.requests) == 3, "no model is asked for it"
        assert "I remember." not in str(await ada.rows("SELECT content FROM messages"))


async def test_each_person_in_their_language(db: Database) -> None:
    async with dialogue(db, *[reply("Hello.")] * 4) as d:
        wanted = {"de-AT": "Ich merke mir das.", "pt-BR": "Eu me lembro.", "pt": "I remember.", "ja": "I remember."}
        for locale, text in wanted.items():
            assert await of(d, f"user-{locale}", locale).hear("Hi") == ["Hello.", text]


async def test_it_names_who_receives_the_words_and_again_when_that_changes(db: Database) -> None:
    async with dialogue(db, *[reply("Hello.")] * 5) as d:
        ada = of(d, "ada", "de")
        ada.notice = Notice(TEXTS, FUNNY, ())
        assert (await ada.hear("Hi"))[1].startswith("Ich merke mir das. Deine Worte beantwortet dieser Rechner")
        assert await ada.hear("Hi") == ["Hello."]
        ada.notice = Notice(TEXTS, FUNNY, ("api.mistral.ai",))
        [_, told] = await ada.hear("Hi")
        assert told.startswith("Deine Worte beantwortet api.mistral.ai, und wer mich betreibt, kann lesen")
        assert await ada.hear("Hi") == ["Hello."]
        # Whom the operator tells nothing is told nothing of it either.
        ada.notice = Notice({}, {}, ("elsewhere.example",))
        assert await ada.hear("Hi") == ["Hello."]


@pytest.mark.parametrize(
    ("section", "rehearsal", "hosts"),
    [
        (ModelSection(), True, ()),
        (ModelSection(base_url="http://127.0.0.1:8080/v1", chat="x"), False, ()),
        (ModelSection(base_url="http://localhost/v1", chat="x"), False, ()),
        (ModelSection(base_url="https://api.mistral.ai/v1", chat="x"), False, ("api.mistral.ai",)),
        (ModelSection(api_key_env="KEY", chat="x"), False, ("api.openai.com",)),
        (
            ModelSection(base_url="https://a.example/v1", chat="x", fallback="y", fallback_url="https://b.example/v1"),
            False,
            ("a.example", "b.example"),
        ),
    ],
)
def test_the_hosts_are_those_of_the_configuration(section: ModelSection, rehearsal: bool, hosts: tuple[str, ...]) -> None:
    assert hosts_of(section, rehearsal=rehearsal) == hosts


async def test_a_workspace_may_have_words_of_its_own_or_none(db: Database) -> None:
    async with dialogue(db, *[reply("Hello.")] * 3) as d:
        assert await of(d, "a", channel="x", workspace="T1").hear("Hi") == ["Hello.", "We remember here."]
        b = of(d, "b", channel="y", workspace="T2")
        assert await b.hear("Hi") == ["Hello."]
        # Elsewhere they still get it.
        assert await of(d, "b").hear("Hi") == ["Hello.", "I remember."]


async def test_a_crash_between_reply_and_commit_sends_it_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with dialogue(db, reply("Hello."), reply("Hello."), reply("Again.")) as d:
        ada = of(d, "ada")
        agent = await ada.accept("Hi")
        claim = await ada.claim(agent)
        from bot.engine import turns

        fence = turns.Step._fence

        async def dies(step: turns.Step, *, notify: bool) -> None:
            await fence(step, notify=notify)
            if step.replied:
                raise KeyboardInterrupt

        monkeypatch.setattr(turns.Step, "_fence", dies)
        with suppress(KeyboardInterrupt):
            await ada.agent.turn(claim)
        monkeypatch.undo()
        claim = await ada.claim(agent)
        await ada.agent.turn(claim)
        assert await ada.outbox(claim) == ["Hello.", "I remember."]
        assert await ada.hear("Hi") == ["Again."]


async def test_after_an_erasure_they_are_strangers_again(db: Database) -> None:
    from memory import erasure

    async with dialogue(db, reply("Hello."), reply("Hello.")) as d:
        ada = of(d, "ada")
        await ada.hear("Hi")
        [agent] = await ada.rows("SELECT id FROM agents")
        # `rows` looks the agent up as a console would; the same person.
        await erasure.erase(db, d.cache, int(str(agent["id"])), actor="person", key=b"k" * 32, now=d.at)
        assert await ada.hear("Hi") == ["Hello.", "I remember."]


async def test_silence_needs_no_notice(db: Database) -> None:
    from tests.servers.model import call

    async with dialogue(db, reply(None, call("stay_silent")), reply("Yes?")) as d:
        room = of(d, "ada", channel="lobby", workspace="g")
        assert await room.hear("somebody else?", addressed=False) == []
        assert await room.hear("you!") == ["Yes?", "I remember."]


async def test_none_at_the_terminal(db: Database) -> None:
    async with dialogue(db, reply("Hello.")) as d:
        d.notice = Notice(TEXTS)
        assert await d.hear("Hi") == ["Hello."]


def test_the_built_in_texts_say_how_to_see_pause_and_erase() -> None:
    texts = in_every_language("notice.first")
    assert ConsentSection().notice is None, "the bot's own"
    for text in texts.values():
        assert all(command in text for command in ("/memory view", "/memory pause", "/memory forget everything"))
        assert len(text) < 300
    with pytest.raises(ValueError, match="under `en`"):
        ConsentSection(notice={"de": "x"})
    here = Place(1, "slack", "T9", "T9", "D1", "direct", "")
    assert Notice(texts).text(here, "fr_FR") == texts["fr"]
    assert Notice({}).text(here, "fr_FR") == ""
