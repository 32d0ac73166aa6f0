"""Rule 5: no memory leaks from private to public, judged by the stricter of then and now, in SQL and not in the prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.db import Database
from memory.places import strictest
from tests.bot.dialogue import Dialogue, dialogue, results, seen
from tests.bot.engine.world import reception_of
from tests.servers.model import ScriptedModel, call, reply

SECRET = "Ada is expecting a child in May."


def remember(text: str) -> object:
    return reply(
        "Noted.", call("working_context_append", section="key_facts", content=text), call("archival_storage_insert", content=text)
    )


async def visible(here: Dialogue, model: ScriptedModel, words: str) -> str:
    """Everything that reaches the model in a turn at a place: the prompt, and what searches of both storages give."""
    model.add(reply(None, call("recall_storage_search", query=words), call("archival_storage_search", query=words)), reply("ok"))
    before = len(model.requests)
    await here.hear("What do you know?")
    last = model.requests[-1]
    return seen(model.requests[before]) + "\n".join(results(last)[-2:])


async def test_what_was_said_in_a_direct_message_stays_there(db: Database) -> None:
    async with dialogue(db, remember(SECRET)) as dm:
        await dm.hear(SECRET)
        for kind in ("public", "private"):
            assert "child" not in await visible(dm.elsewhere(f"room-{kind}", kind), dm.model, "child May Ada expecting")
        assert "child" in await visible(dm, dm.model, "child May Ada expecting")


async def test_what_was_said_in_public_is_known_in_the_same_workspace_and_in_the_direct_message(db: Database) -> None:
    async with dialogue(db, remember("Ada plays the cello.")) as dm:
        await dm.elsewhere("lobby", "public").hear("I play the cello")
        assert "cello" in await visible(dm.elsewhere("garden", "public"), dm.model, "cello Ada plays")
        assert "cello" in await visible(dm.elsewhere("backroom", "private"), dm.model, "cello Ada plays")
        assert "cello" in await visible(dm, dm.model, "cello Ada plays")
        assert "cello" not in await visible(dm.elsewhere("other", "public", workspace="elsewhere"), dm.model, "cello Ada plays")


async def test_a_private_channel_keeps_what_it_heard(db: Database) -> None:
    async with dialogue(db, remember("The launch is on Friday.")) as dm:
        await dm.elsewhere("team", "private").hear("launch on Friday")
        assert "Friday" not in await visible(dm.elsewhere("lobby", "public"), dm.model, "launch Friday")
        assert "Friday" in await visible(dm.elsewhere("team", "private"), dm.model, "launch Friday")
        assert "Friday" in await visible(dm, dm.model, "launch Friday")


async def test_a_channel_turned_private_hides_what_was_public(db: Database) -> None:
    async with dialogue(db, remember("Ada plays the cello."), reply("ok")) as dm:
        await dm.elsewhere("lobby", "public").hear("I play the cello")
        await dm.elsewhere("lobby", "private").hear("now it is private")
        assert "cello" not in await visible(dm.elsewhere("garden", "public"), dm.model, "cello Ada plays")


async def test_a_channel_turned_public_does_not_publish_its_past(db: Database) -> None:
    async with dialogue(db, remember("The launch is on Friday."), remember("So the launch is on Friday, they said.")) as dm:
        await dm.elsewhere("team", "private").hear("launch on Friday")
        # The same channel is public now; what the agent writes there still stands on the private past in its queue.
        await dm.elsewhere("team", "public").hear("what did we say?")
        assert "Friday" not in await visible(dm.elsewhere("lobby", "public"), dm.model, "launch Friday")


async def test_a_channel_that_the_platform_says_is_private_is_so_at_once(db: Database) -> None:
    """Whoever speaks there next, and although nobody does."""
    async with dialogue(db, remember("Ada plays the cello.")) as dm:
        lobby = dm.elsewhere("lobby", "public")
        await lobby.hear("I play the cello")
        await reception_of(db).place_changed(dm.elsewhere("unknown", "private").place)
        assert "cello" in await visible(dm.elsewhere("garden", "public"), dm.model, "cello Ada plays")
        await reception_of(db).place_changed(dm.elsewhere("lobby", "private").place)
        assert "cello" not in await visible(dm.elsewhere("park", "public"), dm.model, "cello Ada plays")
        assert len(await dm.rows("SELECT id FROM places WHERE external_id = 'unknown'")) == 0


async def test_who_loses_a_place_loses_what_came_from_it_until_they_are_back(db: Database) -> None:
    async def usable(word: str) -> bool:
        """In the direct message, as a turn there sees it."""
        [row] = await dm.rows(
            "SELECT agent_id, place_id FROM conversations c JOIN places p ON p.id = c.place_id WHERE p.kind = 'direct'"
        )
        async with db.agent(int(str(row["agent_id"])), int(str(row["place_id"]))) as connection:
            cursor = await connection.execute(
                "SELECT content FROM messages UNION SELECT content FROM passages UNION SELECT content FROM working_context"
            )
            return any(word in found["content"] for found in await cursor.fetchall())

    async def changed(channels: list[str] | None, *, lost: bool) -> None:
        await reception_of(db, dm.at).access_changed(dm.person, "w", channels, lost=lost)

    async with dialogue(db, reply("hi"), remember("The launch is on Friday."), remember("The party is on Monday.")) as dm:
        await dm.hear("hello")
        await dm.elsewhere("team", "private").hear("launch on Friday")
        await dm.elsewhere("garden", "public").hear("party on Monday")
        assert await usable("Friday")
        await changed(["team"], lost=True)
        assert (await usable("Friday"), await usable("Monday")) == (False, True)
        await changed(None, lost=True)  # they left the workspace
        assert (await usable("Friday"), await usable("Monday")) == (False, False)
        await changed(None, lost=False)
        assert (await usable("Friday"), await usable("Monday")) == (True, True)
        # It is theirs all the same: they see and erase it.
        await changed(["team"], lost=True)
        assert len(await dm.rows("SELECT id FROM passages WHERE content LIKE '%%Friday%%'")) == 1


async def test_a_thread_follows_its_channel_into_privacy(db: Database) -> None:
    async with dialogue(db, reply("ok"), remember("Ada plays the cello."), reply("ok")) as dm:
        await dm.elsewhere("lobby", "public").hear("hello")
        await thread(dm, "thread", "public", "lobby").hear("I play the cello")
        await dm.elsewhere("lobby", "private").hear("now it is private")
        assert "cello" not in await visible(dm.elsewhere("garden", "public"), dm.model, "cello Ada plays")


def thread(of: Dialogue, name: str, kind: str, channel: str, *, closed: bool = False) -> Dialogue:
    """A conversation in a thread of a channel; what is said of the thread's kind is said of the channel's."""
    made = of.elsewhere(name, kind)
    made.place = replace(made.place, kind=kind or None, parent=channel, closed=closed)  # type: ignore[arg-type]
    return made


async def test_what_is_said_of_one_thread_changes_its_channel_and_every_other_thread(db: Database) -> None:
    """Nobody ever spoke to the bot in the channel itself."""
    async with dialogue(db, remember("Ada plays the cello."), reply("ok")) as dm:
        await thread(dm, "t1", "public", "lobby").hear("I play the cello")
        assert "cello" in await visible(dm.elsewhere("garden", "public"), dm.model, "cello Ada plays")
        await thread(dm, "t2", "private", "lobby").hear("now it is private")
        assert "cello" not in await visible(dm.elsewhere("park", "public"), dm.model, "cello Ada plays")
        assert (await kinds(dm)).items() >= {"lobby": "private", "t1": "private", "t2": "private"}.items()


async def test_a_channel_that_is_public_again_takes_its_threads_along(db: Database) -> None:
    async with dialogue(db, remember("Ada plays the cello."), reply("ok"), reply("ok")) as dm:
        await thread(dm, "t1", "public", "lobby").hear("I play the cello")
        await thread(dm, "closed", "private", "lobby", closed=True).hear("psst")
        assert await kinds(dm) == {"lobby": "public", "t1": "public", "closed": "private"}, "it says nothing of its channel"
        await reception_of(db).place_changed(dm.elsewhere("lobby", "private").place)
        await thread(dm, "t2", "public", "lobby").hear("public again")
        assert await kinds(dm) == {"lobby": "public", "t1": "public", "t2": "public", "closed": "private"}


async def test_what_the_platform_did_not_say_changes_nothing(db: Database) -> None:
    async with dialogue(db, remember("Ada plays the cello."), *[reply("ok")] * 5) as dm:
        await thread(dm, "t1", "public", "lobby").hear("I play the cello")
        await thread(dm, "t2", "", "lobby").hear("the look at the channel failed")
        await reception_of(db).place_changed(replace(dm.elsewhere("lobby", "public").place, kind=None, name=""))
        assert await kinds(dm) == {"lobby": "public", "t1": "public", "t2": "public"}
        await thread(dm, "t3", "", "team").hear("never seen: private")
        await thread(dm, "t4", "private", "den").hear("this one is private")
        await thread(dm, "t5", "", "den").hear("and stays so")
        assert (await kinds(dm)).items() >= {"team": "private", "t3": "private", "den": "private", "t5": "private"}.items()
        await thread(dm, "t6", "public", "team").hear("asked again")
        assert (await kinds(dm)).items() >= {"team": "public", "t3": "public", "t6": "public"}.items()


async def test_the_known_channels_are_told_without_threads_and_direct_messages(db: Database) -> None:
    async with dialogue(db, reply("ok"), reply("ok"), reply("ok")) as dm:
        await dm.hear("hello")
        await dm.elsewhere("den", "private").hear("hello")
        await thread(dm, "t1", "public", "lobby").hear("hello")
        known = await reception_of(db).channels("console")
        assert [(one.workspace, one.external_id, one.kind) for one in known] == [
            ("w", "lobby", "public"),
            ("w", "den", "private"),
        ]
        assert await reception_of(db).channels("slack") == []


async def kinds(dm: Dialogue) -> dict[str, str]:
    """What each place is now, direct messages aside: the channels, and the threads with a conversation."""
    rows = await dm.rows("SELECT external_id, kind FROM places WHERE kind <> 'direct'")
    channels = {one.external_id: str(one.kind) for one in await reception_of(dm.db).channels("console")}
    return channels | {str(row["external_id"]): str(row["kind"]) for row in rows}


async def test_a_row_marked_shareable_may_be_used_in_the_workspace(db: Database) -> None:
    async with dialogue(db, remember("Ada likes Go.")) as dm:
        room = dm.elsewhere("team", "private")
        await room.hear("I like Go")
        agent = await room.rows("SELECT id FROM agents")
        async with db.agent(int(str(agent[0]["id"])), everything=True) as connection:
            await connection.execute("UPDATE passages SET shareable = true")
        assert "Go" in results(await _asked(dm.elsewhere("lobby", "public"), dm.model))[-1]


async def _asked(here: Dialogue, model: ScriptedModel):  # type: ignore[no-untyped-def]
    model.add(reply(None, call("archival_storage_search", query="Ada likes Go")), reply("ok"))
    await here.hear("?")
    return model.requests[-1]


async def test_a_refused_duplicate_and_a_list_of_candidates_tell_nothing_of_another_place(db: Database) -> None:
    async with dialogue(db, remember(SECRET)) as dm:
        await dm.hear(SECRET)
        dm.model.add(
            remember(SECRET),
            reply(
                None, call("working_context_replace", old="child", new="x"), call("working_context_remove", content="expecting")
            ),
            reply("ok"),
        )
        room = dm.elsewhere("lobby", "public")
        assert await room.hear(SECRET) == ["Noted."], "a duplicate of a hidden entry is not refused"
        await room.hear("Try")
        # In the room exactly the room's own entry is found; that the direct message has one too is not betrayed.
        assert not any("entries match" in result for result in results(dm.model.requests[-1]))


async def test_another_persons_memory_is_never_seen(db: Database) -> None:
    from adapters.base import Person

    async with dialogue(db, remember(SECRET)) as dm:
        await dm.hear(SECRET)
        bob = dm.elsewhere("bob", "direct", workspace="", person=Person("console", "", "bob", "Bob"))
        assert "child" not in await visible(bob, dm.model, "child May Ada expecting")


def test_the_strictest_wins() -> None:
    assert strictest([]) == "public"
    assert strictest(["public", "private"]) == "private"
    assert strictest(["private", "direct", "public"]) == "direct"


@pytest.mark.parametrize("kind", ["public", "private"])
async def test_a_turn_cannot_write_into_another_place(db: Database, kind: str) -> None:
    import psycopg

    async with dialogue(db, reply("ok"), reply("ok")) as dm:
        await dm.elsewhere("lobby", "public").hear("hello")
        await dm.elsewhere("room", kind).hear("hello")
        places = {row["external_id"]: row["id"] for row in await dm.rows("SELECT id, external_id FROM places")}
        [agent] = await dm.rows("SELECT id FROM agents")
        async with db.agent(int(str(agent["id"])), int(str(places["room"]))) as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute(
                    """INSERT INTO working_context (agent_id, place_id, visibility, section, content, created_at, updated_at)
                       VALUES (%s, %s, 'public', 'goals', 'x', now(), now())""",
                    (agent["id"], places["lobby"]),
                )
