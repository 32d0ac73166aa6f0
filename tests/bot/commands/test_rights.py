"""Every command of the registry, by people who are blocked, paused or were never seen: what is theirs stays, over others they have nothing."""

from collections.abc import Awaitable, Callable

import pytest

from adapters.base import Person
from adapters.catalogue import say
from bot.commands import COMMANDS, Command
from tests.bot.commands.conftest import Desk, Opener
from tests.bot.commands.test_admin import BOSS, boss, root
from tests.bot.commands.test_somebody_else import KEPT, SECRETS, TOLD
from tests.bot.dialogue import Dialogue
from tests.servers.model import reply

BLOCKED = say("access.blocked", "en")

DONE = reply("Noted.")
ADMINS = {"w": ("captain",)}
THEIRS = frozenset(
    {
        "/help",
        "/memory view",
        "/memory search",
        "/memory why",
        "/memory forget",
        "/memory changes",
        "/memory export",
        "/memory pause",
        "/memory resume",
        "/documents",
        "/documents read",
        "/documents remove",
        "/stop",
        "/whoami",
        "/admin who",
    }
)
"""What whoever is blocked can still do, with what is kept of them. A new command is not among them until it is named here."""
OVERSIGHT = frozenset(one.name for one in COMMANDS if one.name.startswith("/admin ")) - {"/admin who"}
TAILS = ("@ada", "@ada yes", "console::ada yes", "@root off", "console::root off", "all", "")
NOBODY_ELSE = "Only operators and admins of this workspace may do that."
OPERATOR = "Only the operator may do that."

State = Callable[[Desk, Dialogue], Awaitable[None]]


async def blocked_here(one: Desk, talk: Dialogue) -> None:
    """By another admin of the workspace."""
    second = one.talk.elsewhere("office", "private", person=Person("console", "", "second", "Second", roles=("captain",)))
    assert "blocked in this workspace" in await one.type(f"/admin block {talk.person.author_id}", second)


async def blocked_everywhere(one: Desk, talk: Dialogue) -> None:
    assert "blocked everywhere" in await one.type(f"/admin block {talk.person.author_id}", boss(one))


async def paused(one: Desk, talk: Dialogue) -> None:
    await one.type("/memory pause", talk)


async def everything(one: Desk) -> dict[str, list[dict[str, object]]]:
    """Ada's memory, and who is blocked and known."""
    kept = {table: await one.talk.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in KEPT}
    async with one.parts.db.bare() as connection:
        for name in ("root", "ada"):
            cursor = await connection.execute("SELECT blocked('console', '', %s, 'w') AS blocked", (name,))
            kept[name] = await cursor.fetchall()
        kept["people"] = await (await connection.execute("SELECT * FROM people() ORDER BY 1, 2, 3")).fetchall()
    return kept


def lines(command: Command) -> tuple[str, ...]:
    tails = TAILS if command.name in OVERSIGHT else ("",)
    return (command.example, *(f"{command.name} {tail}".strip() for tail in tails))


@pytest.mark.parametrize("state", [blocked_here, blocked_everywhere])
@pytest.mark.parametrize("pressed", [False, True])
async def test_a_block_leaves_an_admin_what_is_theirs_and_nothing_else(desk: Opener, state: State, pressed: bool) -> None:
    """`pressed`: the line comes from a button or a window, both of which say who they were made for."""
    async with desk(SECRETS, DONE, DONE, operators=BOSS, admins=ADMINS) as one:
        await one.talk.hear(TOLD)
        await one.talk.elsewhere("lounge", "public").hear("Biscuit is in the club.")
        admin = root(one)
        await admin.hear("Hello.")
        await state(one, admin)
        before = await everything(one)

        for command in COMMANDS:
            for line in lines(command):
                answer = (await one.press(line, admin, made_for=admin.person.author_id if pressed else None)).text
                assert (answer == BLOCKED) is (command.name not in THEIRS), (line, answer)
                assert "Biscuit" not in answer.replace(line, ""), line
        assert await everything(one) == before
        assert "/admin memory delete" not in await one.type("/help", admin)


async def test_a_button_from_before_the_block_does_nothing_any_more(desk: Opener) -> None:
    async with desk(SECRETS, DONE, operators=BOSS, admins=ADMINS) as one:
        await one.talk.hear(TOLD)
        await one.talk.elsewhere("lounge", "public").hear("Biscuit is in the club.")
        admin = root(one)
        sure = await one.press("/admin memory delete @ada", admin)
        await blocked_here(one, admin)
        before = await everything(one)
        assert (await one.follow(sure, "Delete", talk=admin)).text == BLOCKED
        assert await everything(one) == before


async def test_an_admins_block_does_not_bind_an_operator_and_one_everywhere_does(desk: Opener) -> None:
    async with desk(SECRETS, operators=(*BOSS, "console::root"), admins=ADMINS) as one:
        await one.talk.hear(TOLD)
        operator = root(one, roles=())
        await blocked_here(one, operator)
        assert "Biscuit" in await one.type("/admin memory view @ada", operator)
        await blocked_everywhere(one, operator)
        assert await one.type("/admin memory view @ada", operator) == BLOCKED
        assert await one.type("/admin block console::root off", operator) == BLOCKED
        assert "operator: yes" not in await one.type("/whoami", operator)


@pytest.mark.parametrize("roles", [("captain",), ()])
async def test_a_pause_takes_no_right_and_gives_none(desk: Opener, roles: tuple[str, ...]) -> None:
    async with desk(SECRETS, DONE, DONE, operators=BOSS, admins=ADMINS) as one:
        await one.talk.hear(TOLD)
        await one.talk.elsewhere("lounge", "public").hear("Biscuit is in the club.")
        asker = root(one, roles=roles)
        await asker.hear("Hello.")
        await paused(one, asker)
        for command in COMMANDS:
            answer = await one.type(f"{command.name} @ada" if command.name in OVERSIGHT else command.example, asker)
            refused = command.name in OVERSIGHT and (not roles or command.name == "/admin pause")
            assert (answer in (NOBODY_ELSE, OPERATOR)) is refused, (command.name, answer)
            assert answer != BLOCKED


async def test_whoever_was_never_seen_gets_no_further_and_is_not_made_known(desk: Opener) -> None:
    async with desk(SECRETS, operators=BOSS, admins=ADMINS) as one:
        await one.talk.hear(TOLD)
        stranger = root(one, roles=())
        before = await everything(one)
        for command in COMMANDS:
            for line in lines(command):
                if command.name in ("/memory pause", "/settings", "/link"):
                    continue  # these keep a wish of theirs, and so somebody
                answer = await one.type(line, stranger)
                assert (answer in (NOBODY_ELSE, OPERATOR)) is (command.name in OVERSIGHT), (line, answer)
                assert "Biscuit" not in answer.replace(line, "")
        assert await everything(one) == before
