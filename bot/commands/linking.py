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
DIRECT = "Please ask me in a direct message, so that nobody else sees the code."
SLOWLY = "That's a lot of codes in a short time. Please try again later."
UNKNOWN = "That code isn't valid: it may be mistyped, expired (after ten minutes) or already used. Ask for a new one with /link in the other account."
CODE_LINE = (
    "Your code is {code}. In a direct message to me from your other account type\n    /link {code}\nwithin ten minutes. "
    "Then come back here and type /link again. Give it to nobody: who takes it asks to share my memory of you."
)
SEEN = (
    "The other account is {who}. If that is you, say yes here (/link yes {mark}), and there as well. Then both talk to one memory: the "
    "older one goes on, and what each account said stays with that account's platform until you allow more with /settings cross on. Your own "
    "commands in a direct message (/memory view, search, changes, export) list both accounts' memory from then on, each under its name. If "
    "it is not you, say no (/link no)."
)
WAITING = "Yes from here. Now say yes in the other account, {who}, too: type /link there."
LINKED = (
    "Linked: both accounts are one person to me now. Pauses and refusals of either hold for both. What I know from one platform I use on it "
    "alone, until you say /settings cross on in a direct message. /unlink parts them again."
)


async def link(asking: Asking) -> Answer:
    """Ask for a code, take one, or answer."""
    asking.allowed("link")
    if not asking.own_direct:
        raise CommandRefused(DIRECT)
    words = asking.argument.split()
    if asking.agent is None:
        asking = await met(asking)
    if words and words[0].casefold() in ("yes", "no") and len(words) <= 2:
        return await _answer(asking, yes=words[0].casefold() == "yes", mark=words[1].casefold() if words[1:] else "")
    if len(words) == 1:
        return await _take(asking, _plain(words[0]))
    if words:
        raise CommandRefused("There is /link (a new code), /link CODE (in the other account), /link yes and /link no.")
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
            raise CommandRefused(SLOWLY)
        await connection.execute(
            "SELECT link_offer(%s, %s, %s, %s, %s, %s, %s)",
            (agent, person.platform, person.realm, person.user_id, _hash(code), now + GOOD, now),
        )
    return Answer(CODE_LINE.format(code=code), (Button("I have typed it there", "/link"),))


async def _take(asking: Asking, code: str) -> Answer:
    agent, _ = asking.known()
    person, now = asking.person, asking.parts.now()
    async with asking.parts.db.bare() as connection:
        if not await value(connection, "SELECT link_try(%s, 'take', %s, %s, %s)", (agent, TRIES, now - GOOD, now)):
            raise CommandRefused(SLOWLY)
        taken = await value(
            connection,
            "SELECT link_take(%s, %s, %s, %s, %s, %s)",
            (agent, person.platform, person.realm, person.user_id, _hash(code), now),
        )
    if taken == "own":
        raise CommandRefused("That is the code of this very account. Type it in a direct message from the other one.")
    if taken == "alike":
        raise CommandRefused(
            "Both have an account on the same platform; only accounts of different platforms or workspaces can be linked."
        )
    seen = await _seen(asking) if taken == "taken" else None
    if seen is None:
        raise CommandRefused(UNKNOWN)
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
        return Answer(WAITING.format(who=who), (Button("No, not me", "/link no", "danger"),))
    mark = _mark(who)
    return Answer(
        SEEN.format(who=who, mark=mark),
        (Button("Yes, that is me", f"/link yes {mark}", "good"), Button("No", "/link no", "danger")),
    )


def _mark(who: str) -> str:
    """Stands in a yes for the account that was seen when it was said."""
    return hashlib.sha256(who.encode()).hexdigest()[:6]


async def _answer(asking: Asking, *, yes: bool, mark: str) -> Answer:
    agent, _ = asking.known()
    other = await _who(asking)
    if other is None:
        raise CommandRefused("The code was not taken in another account, or its ten minutes are over. /link gives a new one.")
    who, _, code = other
    if yes and mark != _mark(who):
        return await _seen(asking) or Answer(UNKNOWN)
    async with asking.parts.db.bare() as connection:
        cursor = await connection.execute("SELECT * FROM link_answer(%s, %s, %s, %s)", (agent, code, yes, asking.parts.now()))
        row = await cursor.fetchone()
        assert row is not None
        if row["need_wake"] and asking.parts.wake is not None:
            await asking.parts.wake(connection, row["survivor"])
    if row["verdict"] == "linked":
        return await _linked(asking, row["gone"])
    return Answer({"waiting": WAITING.format(who=who), "declined": "Not linked. The code is void."}.get(row["verdict"], UNKNOWN))


async def _linked(asking: Asking, gone: int) -> Answer:
    """Note it in the log, and drop what the cache held of the agent that is no more."""
    await asking.parts.cache.forget_quietly(gone)
    now_one = await ask(asking.parts, asking.person, asking.where, "")
    await _note(now_one, "/link")
    return Answer(LINKED, (Button("Let it cross", "/settings cross on"),))


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
        raise CommandRefused(DIRECT)
    async with asking.parts.db.agent(agent, everything=True) as connection:
        cursor = await connection.execute("SELECT platform, realm, user_id, display_name FROM identities ORDER BY created_at")
        accounts = {f"{row['platform']}:{row['realm']}:{row['user_id']}": row for row in await cursor.fetchall()}
    if len(accounts) < 2:
        raise CommandRefused("This is your only account with me. /link begins linking another.")
    words = asking.argument.split()
    if not words or words[0] not in accounts or words[1:] not in ([], ["yes"]):
        lines = [f"  {name}  {row['display_name']}" for name, row in accounts.items()]
        buttons = tuple(Button(f"Part {row['platform']}", f"/unlink {name}") for name, row in accounts.items())
        return Answer("\n".join(["Your accounts", *lines, "To part one: /unlink and its name as it stands here."]), buttons)
    account = accounts[words[0]]
    if words[1:] != ["yes"]:
        return Answer(
            f"{words[0]} gets a memory of its own: all that came from there goes along, the rest stays. To go ahead: /unlink {words[0]} yes",
            (Button("Part them", f"/unlink {words[0]} yes", "danger"),),
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
        raise CommandRefused("That account cannot be parted: it is the only one.")
    await asking.parts.cache.forget_quietly(agent)
    await _note(await ask(asking.parts, asking.person, asking.where, ""), "/unlink")
    return Answer(f"Parted. {words[0]} has a memory of its own now, with what came from there.")
