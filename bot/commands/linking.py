"""/link and /unlink: two accounts of one person, one agent.

One account asks for a code in its direct message, the other takes it in its own. Then each sees the other account and says yes; the second
yes makes them one. A code serves once, for ten minutes, and is kept as a hash. Nothing crosses between the accounts until a separate
/settings cross on.
"""

import hashlib
from datetime import timedelta

from adapters.base import Answer, Button
from bot.commands.context import CODE, LETTERS, Asking, CommandRefused, ask
from bot.commands.pausing import met
from memory import log
from memory.db import value

GOOD = timedelta(minutes=10)
OFFERS, TRIES = 5, 5
"""Codes a person may ask for in an hour, and try in ten minutes."""


async def link(asking: Asking) -> Answer:
    """Ask for a code, take one, or answer."""
    asking.allowed("link")
    if not asking.own_direct:
        raise CommandRefused("link.in_direct")
    words = asking.argument.split()
    if asking.agent is None:
        asking = await met(asking)
    if words and words[0].casefold() in ("yes", "no") and len(words) <= 2:
        return await _answer(asking, yes=words[0].casefold() == "yes", mark=words[1].casefold() if words[1:] else "")
    if len(words) == 1:
        return await _take(asking, _plain(words[0]))
    if words:
        raise CommandRefused("link.usage")
    return await _offer(asking)


def _plain(code: str) -> str:
    return "".join(letter for letter in code.upper() if letter in LETTERS)[: CODE + 1]


def _hash(code: str) -> bytes:
    return hashlib.sha256(f"keepsake link {code}".encode()).digest()


async def _offer(asking: Asking) -> Answer:
    agent, _ = asking.known()
    person, now = asking.person, asking.parts.now()
    if (seen := await _seen(asking)) is not None:
        return seen
    code = asking.parts.code()
    async with asking.parts.db.bare() as connection:
        if not await value(
            connection, "SELECT link_try(%s, 'offer', %s, %s, %s)", (agent, OFFERS, now - timedelta(hours=1), now)
        ):
            raise CommandRefused("link.slowly")
        await connection.execute(
            "SELECT link_offer(%s, %s, %s, %s, %s, %s, %s)",
            (agent, person.platform, person.realm, person.user_id, _hash(code), now + GOOD, now),
        )
    return Answer(asking.say("link.code", code=code), (Button(asking.say("button.typed"), "/link"),))


async def _take(asking: Asking, code: str) -> Answer:
    agent, _ = asking.known()
    person, now = asking.person, asking.parts.now()
    async with asking.parts.db.bare() as connection:
        if not await value(connection, "SELECT link_try(%s, 'take', %s, %s, %s)", (agent, TRIES, now - GOOD, now)):
            raise CommandRefused("link.slowly")
        taken = await value(
            connection,
            "SELECT link_take(%s, %s, %s, %s, %s, %s)",
            (agent, person.platform, person.realm, person.user_id, _hash(code), now),
        )
    if taken == "own":
        raise CommandRefused("link.own")
    if taken == "alike":
        raise CommandRefused("link.alike")
    seen = await _seen(asking) if taken == "taken" else None
    if seen is None:
        raise CommandRefused("link.unknown")
    return seen


async def _who(asking: Asking) -> tuple[str, bool, bytes] | None:
    """The other account in words, whether this side has said yes, and the code's hash; None when there is none."""
    agent, _ = asking.known()
    async with asking.parts.db.bare() as connection:
        cursor = await connection.execute("SELECT * FROM link_seen(%s, NULL, %s)", (agent, asking.parts.now()))
        row = await cursor.fetchone()
    if row is None:
        return None
    return f"{row['name'] or row['user_id']} ({row['platform']}:{row['realm']}:{row['user_id']})", bool(row["mine"]), row["hash"]


async def _seen(asking: Asking) -> Answer | None:
    other = await _who(asking)
    if other is None:
        return None
    who, mine, _ = other
    if mine:
        return Answer(asking.say("link.waiting", who=who), (Button(asking.say("button.not_me"), "/link no", "danger"),))
    mark = _mark(who)
    return Answer(
        asking.say("link.seen", who=who, mark=mark),
        (Button(asking.say("button.me"), f"/link yes {mark}", "good"), Button(asking.say("button.deny"), "/link no", "danger")),
    )


def _mark(who: str) -> str:
    """Stands in a yes for the account that was seen when it was said."""
    return hashlib.sha256(who.encode()).hexdigest()[:6]


async def _answer(asking: Asking, *, yes: bool, mark: str) -> Answer:
    agent, _ = asking.known()
    other = await _who(asking)
    if other is None:
        raise CommandRefused("link.not_taken")
    who, _, code = other
    if yes and mark != _mark(who):
        return await _seen(asking) or Answer(asking.say("link.unknown"))
    async with asking.parts.db.bare() as connection:
        cursor = await connection.execute("SELECT * FROM link_answer(%s, %s, %s, %s)", (agent, code, yes, asking.parts.now()))
        row = await cursor.fetchone()
        assert row is not None
        if row["need_wake"] and asking.parts.wake is not None:
            await asking.parts.wake(connection, row["survivor"])
    if row["verdict"] == "linked":
        return await _linked(asking, row["gone"])
    return Answer(asking.say(f"link.{row['verdict'] if row['verdict'] in ('waiting', 'declined') else 'unknown'}", who=who))


async def _linked(asking: Asking, gone: int) -> Answer:
    """Note it in the log, and drop what the cache held of the agent that is no more."""
    await asking.parts.cache.forget_quietly(gone)
    now_one = await ask(asking.parts, asking.person, asking.where, "")
    await _note(now_one, "/link")
    return Answer(asking.say("link.linked"), (Button(asking.say("button.cross_on"), "/settings cross on"),))


async def _note(asking: Asking, action: str) -> None:
    agent, place = asking.known()
    assert place is not None
    async with asking.parts.db.agent(agent, place) as connection:
        await log.record(
            connection,
            agent=agent,
            place=place,
            at=asking.parts.now(),
            actor="person",
            action=action,
            target="everything",
            target_id=None,
        )


async def unlink(asking: Asking) -> Answer:
    """The linked accounts, or (with one of them) parting it again."""
    asking.allowed("link")
    agent, _ = asking.known()
    if not asking.own_direct:
        raise CommandRefused("link.in_direct")
    async with asking.parts.db.agent(agent, everything=True) as connection:
        cursor = await connection.execute("SELECT platform, realm, user_id, display_name FROM identities ORDER BY created_at")
        accounts = {f"{row['platform']}:{row['realm']}:{row['user_id']}": row for row in await cursor.fetchall()}
    if len(accounts) < 2:
        raise CommandRefused("link.only_one")
    words = asking.argument.split()
    if not words or words[0] not in accounts or words[1:] not in ([], ["yes"]):
        lines = [f"  {name}  {row['display_name']}" for name, row in accounts.items()]
        buttons = tuple(
            Button(asking.say("button.part", platform=row["platform"]), f"/unlink {name}") for name, row in accounts.items()
        )
        return Answer("\n".join([asking.say("link.accounts"), *lines, asking.say("link.to_part")]), buttons)
    account = accounts[words[0]]
    if words[1:] != ["yes"]:
        return Answer(
            asking.say("link.sure", name=words[0]), (Button(asking.say("button.part_them"), f"/unlink {words[0]} yes", "danger"),)
        )
    async with asking.parts.db.bare() as connection:
        made = await value(
            connection,
            "SELECT unlink_account(%s, %s, %s, %s, %s)",
            (agent, account["platform"], account["realm"], account["user_id"], asking.parts.now()),
        )
        if made is not None:
            await connection.execute("SELECT enter(%s, NULL, true)", (made,))
            if await value(connection, "SELECT wake FROM agents") and asking.parts.wake is not None:
                await asking.parts.wake(connection, made)
    if made is None:
        raise CommandRefused("link.last")
    await asking.parts.cache.forget_quietly(agent)
    await _note(await ask(asking.parts, asking.person, asking.where, ""), "/unlink")
    return Answer(asking.say("link.parted", name=words[0]))
