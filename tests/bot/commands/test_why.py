"""/memory why: what stood before the agent's eyes when it answered."""

from datetime import timedelta

from tests.bot.commands.conftest import Opener
from tests.servers.model import call, reply

FACT = reply("Noted.", call("working_context_append", section="profile", content="Has a dog called Biscuit."))
PASSAGE = reply("Noted.", call("archival_storage_insert", content="The vet is Dr. Lima, in Rua das Flores."))


async def test_the_answer_is_traced_to_entries_and_searches(desk: Opener) -> None:
    looked = reply(None, call("recall_storage_search", query="sister"), call("archival_storage_search", query="vet"))
    async with desk(FACT, PASSAGE, reply("Fine."), looked, reply("She lives in Porto.")) as one:
        assert "know nothing about you" in await one.type("/memory why")
        await one.talk.hear("My dog is called Biscuit.")
        await one.talk.hear("The vet is Dr. Lima, in Rua das Flores.")
        await one.talk.elsewhere("lounge", "public").hear("My sister lives in Porto.")
        await one.talk.hear("Where does my sister live, and who is the vet?")
        said = await one.type("/memory why")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        [passage] = await one.talk.rows("SELECT id FROM passages")
        [sister] = await one.talk.rows("SELECT id FROM messages WHERE content = 'My sister lives in Porto.'")
        assert "My last answer here" in said
        assert "She lives in Porto." in said
        assert "Where does my sister live" in said
        assert f"w{entry['id']}  Has a dog called Biscuit." in said
        looked_up = said.split("What I looked up for it")[1]
        assert f"a{passage['id']}" in looked_up
        assert f"m{sister['id']}" in looked_up
        assert "Of our conversation: 4 messages before it" in said
        one.talk.clock[0] += timedelta(minutes=1)
        await one.type(f"/memory correct w{entry['id']} Has two dogs.")
        assert "Has two dogs. (changed since)" in await one.type("/memory why")


async def test_a_channel_is_told_of_what_was_seen_there_alone(desk: Opener) -> None:
    async with desk(FACT, reply("Hello!")) as one:
        group = one.talk.elsewhere("lounge", "public")
        await one.talk.hear("My dog is called Biscuit.")
        await group.hear("Hello.")
        said = await one.type("/memory why", group)
        assert "Hello!" in said
        assert "Biscuit" not in said
        assert "The working context was empty." in said
        assert "I did not look anything up." in said


async def test_nothing_was_answered_yet(desk: Opener) -> None:
    async with desk() as one:
        await one.talk.accept("Hello.")
        assert "not answered anything" in await one.type("/memory why")
