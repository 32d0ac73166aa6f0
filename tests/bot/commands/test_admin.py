"""/admin: operators across people, a workspace's admins with what came from there; every act stands where the person sees it."""

from dataclasses import replace
from datetime import timedelta

from adapters.base import Incoming, Person, PlaceOf
from bot.engine import inbox
from tests.bot.commands.conftest import KEY, Desk, Opener
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import Dialogue
from tests.conftest import Urls
from tests.servers.model import call, reply

FACT = reply("Noted.", call("working_context_append", section="profile", content="Has a dog called Biscuit."))
CLUB = reply("Noted.", call("working_context_append", section="key_facts", content="Plays the cello in the club."))
DONE = reply("Noted.")
BOSS = ("console::boss",)


def boss(one: Desk) -> Dialogue:
    """The operator's own direct message."""
    made = one.talk.elsewhere("boss", "direct", workspace="", person=Person("console", "", "boss", "Boss"))
    made.place = PlaceOf("console", "", "", "boss", "direct")
    return made


def root(one: Desk, *, roles: tuple[str, ...] = ("captain",), workspace: str = "w") -> Dialogue:
    """Somebody in a channel of a workspace, admin by their role."""
    return one.talk.elsewhere("office", "private", workspace=workspace, person=Person("console", "", "root", "Root", roles=roles))


async def test_an_operator_sees_exports_and_erases_and_the_person_sees_that(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, operators=BOSS) as one:
        await one.talk.hear("My dog is called Biscuit.")
        for name in ("@ada", "@Ada", "<@ada>", "<@!ada>", "console::ada", "ada"):
            assert "Biscuit" in await one.type(f"/admin memory view {name}", boss(one))
        assert "for you alone" in await one.type("/admin memory export @ada", boss(one))
        seen = await one.type("/memory view")
        assert "operator: /admin memory view" in seen
        assert "operator: /admin memory export" in seen
        assert "nothing stored about that person" in await one.type("/admin memory view @nobody", boss(one))
        assert "Say who" in await one.type("/admin memory view", boss(one))
        sure = await one.press("/admin memory delete @ada", boss(one))
        assert "This erases everything of console::ada" in sure.text
        assert "Biscuit" in await one.type("/memory view")
        gone = await one.follow(sure, "Delete", talk=boss(one))
        assert "found nothing left" in gone.text
        assert await everywhere(urls.owner, "Biscuit") == []


async def test_nobody_else_may(desk: Opener) -> None:
    async with desk(FACT, operators=BOSS, admins={"w": ("captain",)}) as one:
        await one.talk.hear("My dog is called Biscuit.")
        people = (one.talk, root(one, roles=()), root(one, workspace="elsewhere"), root(one, workspace=""))
        for line in (
            "/admin memory view @ada",
            "/admin memory export @ada",
            "/admin memory delete @ada yes",
            "/admin usage",
            "/admin usage @ada",
            "/admin pause all",
            "/admin pause @ada",
            "/admin block @ada",
            "/admin memory view @nobody",
        ):
            for talk in people:
                said = await one.type(line, talk)
                assert "may do that" in said or "somebody else" in said, (line, said)
        assert "Only the operator" in await one.type("/admin pause @ada", root(one))
        assert await one.talk.rows("SELECT 1 FROM memory_log WHERE actor <> 'agent'") == []
        assert await one.talk.entries() != []


async def test_an_admin_reaches_what_came_from_their_workspace_alone(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, CLUB, DONE, operators=BOSS, admins={"w": ("captain",)}) as one:
        lounge, other = one.talk.elsewhere("lounge", "public"), one.talk.elsewhere("attic", "public", workspace="x")
        await one.talk.hear("My dog is called Biscuit.")
        await lounge.hear("I play the cello in the club.")
        await other.hear("My attic is full of tulips.")
        shown = await one.type("/admin memory view @ada", root(one))
        assert "cello" in shown
        assert "What came from this workspace." in shown
        assert "Everything we said: 2 messages" in shown
        assert "Biscuit" not in shown
        await one.type("/admin memory export @ada", root(one))
        written = "".join(path.read_text() for path in (one.parts.data / "exports").iterdir())
        assert "cello" in written
        assert "Biscuit" not in written
        assert "tulips" not in written
        assert "admin: /admin memory view" in await one.type("/memory view")
        sure = await one.press("/admin memory delete @ada", root(one))
        assert "everything that came from this workspace" in sure.text
        done = await one.follow(sure, "Delete", talk=root(one))
        assert "That was 2 messages, 1 entry of the working context" in done.text
        assert await everywhere(urls.owner, "cello") == []
        assert await everywhere(urls.owner, "Biscuit") != []
        assert await everywhere(urls.owner, "tulips") != []
        assert "admin: /admin memory delete" in await one.type("/memory view")


async def test_direct_messages_within_a_workspace_only_where_the_config_says_so(desk: Opener) -> None:
    async with desk(FACT, admins={"w": ("captain",)}) as one:
        one.talk.place = replace(one.talk.place, workspace="w")
        await one.talk.hear("My dog is called Biscuit.")
        assert "Biscuit" not in await one.type("/admin memory view @ada", root(one))
        one.parts = replace(one.parts, admins_see_direct=one.talk.at.date())
        # Not of somebody whom the notice told otherwise.
        for noticed in ("2026-11-29", None):
            await one.talk.rows("UPDATE agents SET noticed_at = %s RETURNING id", (noticed,))
            assert "Biscuit" not in await one.type("/admin memory view @ada", root(one))
        await one.talk.rows("UPDATE agents SET noticed_at = %s RETURNING id", (one.talk.at,))
        assert "Biscuit" in await one.type("/admin memory view @ada", root(one))
        assert "of those who were told so" in await one.type("/admin who", root(one))


async def test_usage_of_all_of_a_workspace_and_of_one(desk: Opener) -> None:
    async with desk(DONE, DONE, operators=BOSS, admins={"w": ("captain",)}) as one:
        await one.talk.hear("Hello.")
        await one.talk.elsewhere("lounge", "public").hear("Hello.")
        assert "2 calls by 1 person" in await one.type("/admin usage", boss(one))
        assert "1 call by 1 person" in await one.type("/admin usage", root(one))
        assert "console::ada" in await one.type("/admin usage @ada", boss(one))
        assert "operator: /admin usage" in await one.type("/memory view")


async def test_an_operators_pause_is_not_the_persons_to_end(desk: Opener) -> None:
    async with desk(DONE, operators=BOSS) as one:
        await one.talk.hear("Hello.")
        assert "paused for console::ada" in await one.type("/admin pause @ada", boss(one))
        assert "only they can end that" in await one.type("/memory resume")
        assert "on again for console::ada" in await one.type("/admin pause @ada off", boss(one))
        assert "not paused" in await one.type("/memory resume")
        # One's own pause outlives a pause of everybody.
        await one.type("/memory pause")
        assert "/admin pause all pauses everybody" in await one.type("/admin pause", boss(one))
        assert "paused for 0 people" in await one.type("/admin pause all", boss(one))
        await one.type("/admin pause all off", boss(one))
        assert "I remember again" in await one.type("/memory resume")
        assert "operator: /admin pause" in await one.type("/memory view")


async def test_whoever_is_blocked_is_heard_no_more_and_keeps_their_rights(desk: Opener) -> None:
    async with desk(FACT, operators=BOSS, admins={"w": ("captain",)}) as one:
        lounge = one.talk.elsewhere("lounge", "public")
        await one.talk.hear("My dog is called Biscuit.")
        assert "blocked in this workspace" in await one.type("/admin block @ada", root(one))
        assert await _accepted(one, lounge) is False
        assert await _accepted(one, one.talk) is True
        await one.type("/stop")
        assert "blocked everywhere" in await one.type("/admin block @ada", boss(one))
        assert "blocked already" in await one.type("/admin block @ada", boss(one))
        assert await _accepted(one, one.talk) is False
        assert "You are blocked here" in await one.type("/retry")
        assert "Biscuit" in await one.type("/memory view")
        assert "admin: /admin block" in await one.type("/memory view")
        # It outlives an erasure, and names nobody.
        await one.type("/memory forget everything yes")
        assert await _accepted(one, one.talk) is False
        assert "no longer blocked" in await one.type("/admin block @ada off", boss(one))
        assert await _accepted(one, one.talk) is True


async def _accepted(one: Desk, talk: Dialogue) -> bool:
    one.talk.clock[0] += timedelta(minutes=1)
    incoming = Incoming("message", talk.person, talk.place, f"k{one.talk.at.isoformat()}", one.talk.at, "Hello?")
    found = await inbox.accept(one.parts.db, incoming, burst=timedelta(), now=one.talk.at, erasure_key=KEY)
    return found.event_id is not None


async def test_everybody_can_read_who_sees_what(desk: Opener) -> None:
    async with desk(DONE, operators=BOSS, admins={"w": ("captain",)}) as one:
        lounge = one.talk.elsewhere("lounge", "public")
        await lounge.hear("Hello.")
        said = await one.type("/admin who", lounge)
        assert "admins of this workspace (captain): what came from this workspace, direct messages excepted" in said
        assert "people of this workspace I remember: 1" in said
        assert "operators (console::boss): everything" in said
        assert "/admin memory" not in await one.type("/help")
        assert "/admin memory delete" in await one.type("/help", boss(one))


async def test_an_admin_does_not_learn_who_is_known_in_another_workspace(desk: Opener) -> None:
    async with desk(DONE, admins={"w": ["captain"]}) as one:
        await one.talk.elsewhere("lounge", "public", workspace="another").hear("My dog is called Biscuit.")
        lines = ("view {}", "export {}", "delete {}", "delete {} yes")
        for line in (*(f"/admin memory {each}" for each in lines), "/admin usage {}"):
            of_her = await one.type(line.format("console::ada"), root(one))
            assert (
                of_her == await one.type(line.format("console::nobody"), root(one)) == "I have nothing stored about that person."
            )
        assert "admin" not in await one.type("/memory view"), "what was not done is not noted either"


async def test_a_name_is_looked_for_in_the_admins_workspace_alone(desk: Opener) -> None:
    async with desk(DONE, DONE, admins={"w": ["captain"]}) as one:
        await one.talk.elsewhere("lounge", "public").hear("My dog is called Biscuit.")
        namesake = one.talk.elsewhere("hall", "public", workspace="another", person=Person("console", "", "ada2", "Ada"))
        await namesake.hear("My cat is called Tom.")
        shown = await one.type("/admin memory view @Ada", root(one))
        assert "Everything we said: 2 messages" in shown
        for nobody in ("@", "::", "x" * 300):
            assert "Say who" in await one.type(f"/admin block {nobody}", root(one))
