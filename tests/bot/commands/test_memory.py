"""/memory view and search: everything in the own direct message, elsewhere what may be used there."""

from datetime import timedelta

from adapters.base import Person, PlaceOf
from tests.bot.commands.conftest import Opener
from tests.servers.model import call, reply

FACT = reply(None, call("working_context_append", request_heartbeat=True, section="profile", content="Has a dog called Biscuit."))
PASSAGE = reply(
    None, call("archival_storage_insert", request_heartbeat=True, content="The garden plan: roses by the wall.", tags=["garden"])
)
DONE = reply("Noted.")


async def test_view_shows_sections_sources_and_totals(desk: Opener) -> None:
    async with desk(FACT, DONE, PASSAGE, DONE) as one:
        await one.talk.hear("My dog is called Biscuit.")
        await one.talk.hear("Keep my garden plan: roses by the wall.")
        shown = await one.type("/memory view")
    assert "  profile\n    w" in shown
    assert "Has a dog called Biscuit." in shown
    assert "direct message; m" in shown
    assert "30 Nov 2026 08:01" in shown
    assert "The garden plan: roses by the wall. [garden]" in shown
    assert "Everything we said: 4 messages since 30 Nov 2026 08:01. Kept apart: 1 note." in shown


async def test_search_finds_both_and_pages(desk: Opener) -> None:
    async with desk(PASSAGE, DONE, *[DONE] * 7) as one:
        await one.talk.hear("Keep my garden plan: roses by the wall.")
        for number in range(7):
            await one.talk.hear(f"The garden has {number} roses.")
        found = await one.type("/memory search garden roses")
        assert "Archival storage. Showing 1 of 1" in found
        assert "Messages. Showing 5 of 8 results (page 1/2)" in found
        assert "Ada: The garden has" in found
        assert "Showing 3 of 8 results (page 2/2)" in await one.type("/memory search garden roses page 2")
        assert await one.type("/memory search zeppelin") == "Nothing found."
        assert "Say what to look for" in await one.type("/memory search")


async def test_search_understands_the_day_that_it_names(desk: Opener) -> None:
    async with desk(*[DONE] * 2) as one:
        for said in ("We went to the museum of trains.", "We went to the museum of boats."):
            await one.talk.hear(said)
            one.talk.clock[0] += timedelta(days=20)
        found = await one.type("/memory search the museum in November")
    assert found.index("trains") < found.index("boats")


async def test_a_group_place_shows_only_what_may_be_used_there(desk: Opener) -> None:
    async with desk(FACT, DONE, DONE) as one:
        await one.talk.hear("My dog is called Biscuit.")
        group = one.talk.elsewhere("lounge", "public")
        await group.hear("Hello everybody.")
        shown = await one.type("/memory view", group)
        assert "What may be used in this place" in shown
        assert "Biscuit" not in shown
        assert "Everything we said: 2 messages" in shown
        assert await one.type("/memory search Biscuit", group) == "Nothing found."
        assert "Biscuit" not in await one.type("/memory export", group)
        assert "Hello everybody." in await one.type("/memory search everybody")


async def test_nobody_sees_somebody_elses_memory(desk: Opener) -> None:
    async with desk(FACT, DONE, DONE) as one:
        await one.talk.hear("My dog is called Biscuit.")
        bob = one.talk.elsewhere("bob", "direct", workspace="", person=Person("console", "", "bob", "Bob"))
        bob.place = PlaceOf("console", "", "", "bob", "direct")
        await bob.hear("Hello.")
        for line in ("/memory view", "/memory search Biscuit", "/status"):
            assert "Biscuit" not in await one.type(line, bob)
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        assert "There is no" in await one.type(f"/memory forget w{entry['id']}", bob)
        assert await one.talk.entries() != []


async def test_what_no_database_holds_is_taken_out_of_a_line(desk: Opener) -> None:
    async with desk(reply("Noted."), operators=("console::ada",)) as one:
        await one.talk.hear("My dog is called Biscuit.")
        lines = (
            "/memory forget #{}",
            "/memory search {}",
            "/memory undo {}",
            "/admin memory view @{}",
            "/memory undo " + "9" * 5000,
        )
        for line in lines:
            for odd in ("\x00", "\ud800", "a\x00b"):
                assert await one.type(line.format(odd))


async def test_whoami_says_where_words_go_and_who_can_read_them(desk: Opener) -> None:
    async with desk(hosts=("api.mistral.ai",), admins={"w": ["boss"]}) as one:
        said = await one.type("/whoami")
        assert "answered by api.mistral.ai" in said
        assert "who can read them: whoever runs me (/admin who)" in said
        assert "this workspace's admins, the people here" in await one.type("/whoami", one.talk.elsewhere("lounge", "public"))
    async with desk() as one:
        assert "answered by this machine" in await one.type("/whoami")
