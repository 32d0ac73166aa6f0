"""/memory correct, share and undo: every change can be taken back until it is erased."""

from adapters.base import Quote
from tests.bot.commands.conftest import Desk, Opener
from tests.bot.dialogue import seen
from tests.servers.model import call, reply

FACT = reply("Noted.", call("working_context_append", section="profile", content="Has a dog called Biscuit."))
DONE = reply("Noted.")


async def entry(one: Desk) -> str:
    [row] = await one.talk.rows("SELECT id FROM working_context")
    return f"w{row['id']}"


async def test_a_correction_is_seen_by_the_next_turn_and_undone(desk: Opener) -> None:
    async with desk(FACT, DONE) as one:
        await one.talk.hear("My dog is called Biscuit.")
        number = await entry(one)
        shown = await one.press(f"/memory view {number}")
        said = await one.follow(shown, "Correct", "Has a dog called Bisou.")
        assert said.text.startswith(f"Corrected. {number} now reads: Has a dog called Bisou.")
        await one.talk.hear("What is it called?")
        assert "called Bisou." in seen(one.talk.model.requests[-1])
        assert "dog called Biscuit." not in one.talk.model.requests[-1].contents("system")[0]
        back = await one.follow(said, "Undo")
        assert f"Undone: {number} reads again: Has a dog called Biscuit." in back.text
        assert await one.talk.entries() == [("profile", "Has a dog called Biscuit.")]
        # An undoing is a change as well.
        again = await one.follow(back, "Undo that")
        assert "reads again: Has a dog called Bisou." in again.text
        changes = await one.type("/memory changes")
        assert changes.count("/memory undo") >= 2
        assert "(undone)" in changes


async def test_what_the_agent_did_is_undone_too_with_number_and_sources(desk: Opener) -> None:
    removed = reply("Removed.", call("working_context_remove", content="Has a dog called Biscuit."))
    async with desk(FACT, removed) as one:
        await one.talk.hear("My dog is called Biscuit.")
        number = await entry(one)
        await one.talk.hear("Forget the dog in your notes.")
        assert await one.talk.entries() == []
        assert f"Undone: {number} is there again: Has a dog called Biscuit." in await one.type("/memory undo")
        assert await entry(one) == number
        assert "made of m" in await one.type(f"/memory view {number}")
        # Undoing goes on backwards: now that it was made at all.
        assert f"Undone: {number} is gone again." in await one.type("/memory undo")
        assert "nothing to undo" in await one.type("/memory undo")
        # And a message that is forgotten takes along what would come back.
        [message] = await one.talk.rows("SELECT id FROM messages WHERE content LIKE '%%called Biscuit%%' AND role = 'user'")
        await one.type(f"/memory forget m{message['id']}")
        assert await one.talk.rows("SELECT 1 FROM memory_log_content WHERE row_before::text LIKE '%%Biscuit%%'") == []
        assert "nothing to undo" in await one.type("/memory undo")


async def test_an_older_change_waits_for_the_later_ones(desk: Opener) -> None:
    async with desk(FACT) as one:
        await one.talk.hear("My dog is called Biscuit.")
        number = await entry(one)
        await one.type(f"/memory correct {number} Has a cat.")
        await one.type(f"/memory correct {number} Has a bird.")
        first = (await one.talk.rows("SELECT id FROM memory_log WHERE action = '/memory correct' ORDER BY id"))[0]["id"]
        assert "changed since" in await one.type(f"/memory undo {first}")
        await one.type("/memory undo")
        assert "reads again: Has a dog called Biscuit." in await one.type("/memory undo")
        assert "undone already" in await one.type(f"/memory undo {first}")
        assert "no change 999999" in await one.type("/memory undo 999999")


async def test_what_cannot_be_corrected(desk: Opener) -> None:
    second = reply("Noted.", call("working_context_append", section="profile", content="Lives in Porto."))
    async with desk(FACT, second) as one:
        await one.talk.hear("My dog is called Biscuit.")
        number = await entry(one)
        await one.talk.hear("I live in Porto.")
        for line, said in (
            ("/memory correct", "Say what to correct"),
            (f"/memory correct {number}", "Say what to correct"),
            ("/memory correct w999999 x", "There is no w999999 here"),
            ("/memory correct m1 x", "stays as it was said"),
            (f"/memory correct {number} lives in porto", "there already as another entry"),
            (f"/memory correct {number} {'x' * 501}", "may have 500 characters"),
        ):
            assert said in await one.type(line)


async def test_a_timer_comes_back(desk: Opener) -> None:
    steps = (
        reply("Set.", call("set_timer", purpose="water the roses", asked="Remind me to water the roses", in_minutes=90)),
        reply("Gone.", call("cancel_timer", timer=1)),
    )
    async with desk(*steps) as one:
        await one.talk.hear("Remind me to water the roses in 90 minutes.")
        await one.talk.hear("No, do not.")
        assert await one.talk.rows("SELECT id FROM timers WHERE due_at IS NOT NULL") == []
        assert "water the roses" in await one.type("/memory undo")
        assert len(await one.talk.rows("SELECT id FROM timers WHERE due_at IS NOT NULL")) == 1


async def test_sharing_lets_a_channel_see_one_thing_and_no_other(desk: Opener) -> None:
    second = reply("Noted.", call("working_context_append", section="profile", content="Lives in Porto."))
    async with desk(FACT, second, DONE, DONE, DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await one.talk.hear("My dog is called Biscuit.")
        number = await entry(one)
        await one.talk.hear("I live in Porto.")
        await group.hear("Hello.")
        assert "Biscuit" not in seen(one.talk.model.requests[-1])
        said = await one.press(f"/memory share {number}")
        assert "where others read my answers" in said.text
        assert "shared already" in await one.type(f"/memory share {number}")
        await group.hear("Hello again.")
        assert "Biscuit" in seen(one.talk.model.requests[-1])
        assert "Porto" not in seen(one.talk.model.requests[-1])
        assert "only where it came from" in (await one.follow(said, "Do not share")).text
        await group.hear("And now?")
        assert "Biscuit." not in one.talk.model.requests[-1].contents("system")[0]


HORSE = "My horse is called Zephyrine and she is lame"


async def test_nobody_shares_somebody_elses_words(desk: Opener) -> None:
    """Neither the quote, nor what was noted of it with or without a name, nor the bot's answer that repeats it."""
    store = reply(
        "Ben says his horse is called Zephyrine and is lame.",
        call("working_context_append", section="key_facts", content="Ben's horse is called Zephyrine and is lame."),
        call("archival_storage_insert", content="Ben: my horse is called Zephyrine and she is lame."),
    )
    async with desk(store, DONE) as one:
        room = one.talk.elsewhere("stable", "private")
        await room.hear("What does he mean?", quotes=(Quote("console::ben", "Ben", HORSE, "context"),))
        [quote, answer] = await one.talk.rows(
            "SELECT id FROM messages WHERE content LIKE '%%Zephyrine%%' AND kind <> 'call' ORDER BY id"
        )
        [noted] = await one.talk.rows("SELECT id FROM working_context")
        [stored] = await one.talk.rows("SELECT id FROM passages")
        for number in (f"m{quote['id']}", f"m{answer['id']}", f"w{noted['id']}", f"a{stored['id']}"):
            said = await one.type(f"/memory share {number}", room)
            assert "somebody else's words (console::ben)" in said, number
        lounge = one.talk.elsewhere("lounge", "public")
        await lounge.hear("What about horses?")
        assert "Zephyrine" not in seen(one.talk.model.requests[-1])
        # What the person said themselves, in the same breath, is theirs to share.
        [own] = await one.talk.rows("SELECT id FROM messages WHERE content = 'What does he mean?'")
        assert "may now be used" in await one.type(f"/memory share m{own['id']}", room)


async def test_a_correction_typed_in_private_stays_private(desk: Opener) -> None:
    async with desk(FACT, DONE, DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await group.hear("My dog is called Biscuit.")
        await one.talk.hear("Hello.")
        number = await entry(one)
        said = await one.type(f"/memory correct {number} Has a dog called Biscuit, who is ill.")
        assert "counts as said here now" in said
        await group.hear("And now?")
        assert "ill" not in one.talk.model.requests[-1].contents("system")[0].split("# Working context")[1]


async def test_an_undo_button_pressed_late_takes_back_its_own_change_alone(desk: Opener) -> None:
    tuba = reply("Noted.", call("working_context_append", section="profile", content="Plays the tuba."))
    async with desk(FACT, tuba) as one:
        await one.talk.hear("My dog is called Biscuit.")
        await one.talk.hear("I play the tuba.")
        dog, music = [row["id"] for row in await one.talk.rows("SELECT id FROM working_context ORDER BY id")]
        first = await one.press(f"/memory correct w{dog} Has two dogs.")
        await one.press(f"/memory correct w{music} Plays the flute.")
        await one.follow(first, "Undo")
        assert await one.talk.entries() == [("profile", "Has a dog called Biscuit."), ("profile", "Plays the flute.")]


async def test_a_forgetting_cannot_be_undone_and_hides_no_earlier_change(desk: Opener) -> None:
    tuba = reply("Noted.", call("working_context_append", section="profile", content="Plays the tuba."))
    async with desk(FACT, tuba) as one:
        await one.talk.hear("My dog is called Biscuit.")
        await one.talk.hear("I play the tuba.")
        dog, music = [row["id"] for row in await one.talk.rows("SELECT id FROM working_context ORDER BY id")]
        await one.type(f"/memory correct w{music} Plays the flute.")
        await one.type(f"/memory forget w{dog}")
        number = (await one.talk.rows("SELECT max(id) AS id FROM memory_log"))[0]["id"]
        assert "cannot be undone" in await one.type(f"/memory undo {number}")
        assert f"w{music} reads again: Plays the tuba." in await one.type("/memory undo")
