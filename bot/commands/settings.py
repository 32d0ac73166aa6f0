"""/settings: time zone, quiet hours, leave to speak first, and whether linked accounts share what they know."""

import difflib
import re
from datetime import datetime, time
from typing import Any
from zoneinfo import available_timezones

from adapters.base import Answer, Button
from bot.commands.changing import changed, lock
from bot.commands.context import NOBODY, Asking, CommandRefused
from memory import log
from memory.agent_state import zone_of
from memory.db import Connection

USAGE = (
    "To change something: /settings timezone Europe/Berlin, /settings quiet 22:00-08:00 (or off, or default), /settings openers on (or off), "
    "/settings cross on (or off)."
)
ZONE = "I don't know the time zone {}.{} Name a large city near you, such as /settings timezone Europe/Berlin."
NAMELESS = "Which time zone? Name a large city near you, such as /settings timezone Europe/Berlin."
QUIET = "Write the hours as 22:00-08:00, or off for none, or default for the usual ones: /settings quiet 22:00-08:00."
ON, OFF = frozenset({"on", "yes"}), frozenset({"off", "no"})


async def settings(asking: Asking) -> Answer:
    """Show them, or change one."""
    asking.allowed("settings")
    if asking.agent is None:
        return Answer(NOBODY)
    word, _, rest = asking.argument.strip().partition(" ")
    word, rest = word.casefold(), rest.strip()
    if not word:
        return await _shown(asking)
    if word == "timezone":
        return await _zone(asking, zone_called(rest))
    if word == "quiet":
        start, end = hours(rest)
        return await _speaking(asking, "UPDATE speaking SET quiet_from = %s, quiet_to = %s", (start, end))
    if word == "openers" and rest.casefold() in ON | OFF:
        openers = "yes" if rest.casefold() in ON else "no"
        return await _speaking(asking, "UPDATE speaking SET openers = %s, decided_at = %s", (openers, asking.parts.now()))
    if word == "cross" and rest.casefold() in ON | OFF:
        return await _cross(asking, on=rest.casefold() in ON)
    return Answer(USAGE)


def zone_called(name: str) -> str:
    """An IANA name in its own spelling. Raises CommandRefused, with what it may have been meant to be."""
    known = available_timezones()
    by_name = {each.casefold(): each for each in known}
    wanted = name.strip().replace(" ", "_").casefold()
    if wanted in by_name:
        return by_name[wanted]
    cities = sorted(each for each in known if each.rpartition("/")[2].casefold() == wanted)
    near = cities or difflib.get_close_matches(wanted, by_name, 1)
    if not wanted:
        raise CommandRefused(NAMELESS)
    raise CommandRefused(ZONE.format(name[:40], f" Did you mean {by_name.get(near[0], near[0])}?" if near else ""))


def hours(text: str) -> tuple[time | None, time | None]:
    """Quiet hours: from and to, both midnight for none, both None for the operator's. Raises CommandRefused."""
    plain = text.strip().casefold()
    if plain in OFF:
        return time(), time()
    if plain == "default":
        return None, None
    found = re.fullmatch(r"(\d{1,2})(?:[:.](\d{2}))?\s*(?:-|–|to)\s*(\d{1,2})(?:[:.](\d{2}))?", plain)
    try:
        start, end = time(int(found[1]), int(found[2] or 0)), time(int(found[3]), int(found[4] or 0))  # type: ignore[index]
    except (TypeError, ValueError):
        raise CommandRefused(QUIET) from None
    if start == end:
        raise CommandRefused("Those hours begin and end at the same time. " + QUIET)
    return start, end


async def _zone(asking: Asking, zone: str) -> Answer:
    agent, place = asking.known()
    async with asking.parts.db.agent(agent, place) as connection:
        await lock(connection)
        await connection.execute("UPDATE agents SET timezone = %s", (zone,))
        await _logged(asking, connection)
    return await _shown(asking)


async def _speaking(asking: Asking, change: str, values: tuple[Any, ...]) -> Answer:
    agent, place = asking.known()
    async with asking.parts.db.agent(agent, place) as connection:
        await lock(connection)
        await connection.execute("INSERT INTO speaking (agent_id) VALUES (%s) ON CONFLICT DO NOTHING", (agent,))
        await connection.execute(change, values)
        await _logged(asking, connection)
    return await _shown(asking)


async def _cross(asking: Asking, *, on: bool) -> Answer:
    agent, place = asking.known()
    async with asking.parts.db.agent(agent, place) as connection:
        accounts = await (await connection.execute("SELECT platform, realm FROM identities")).fetchall()
        if len(accounts) < 2:
            raise CommandRefused("You have no other account linked. /link begins that, in a direct message.")
        if not asking.own_direct:
            raise CommandRefused("Ask for that in a direct message to me.")
        await lock(connection)
        await connection.execute("UPDATE agents SET cross_accounts = %s", (on,))
        await _logged(asking, connection)
    return await _shown(asking)


async def _logged(asking: Asking, connection: Connection) -> None:
    agent, place = asking.known()
    assert place is not None
    await log.record(
        connection,
        agent=agent,
        place=place,
        at=asking.parts.now(),
        actor="person",
        action="/settings",
        target="everything",
        target_id=None,
    )
    await changed(connection)


async def _shown(asking: Asking) -> Answer:
    agent, place = asking.known()
    async with asking.parts.db.agent(agent, place) as connection:
        cursor = await connection.execute(
            """SELECT coalesce(a.timezone, '') AS zone, a.paused, a.cross_accounts, (SELECT count(*) FROM identities) AS accounts,
                 coalesce(s.openers, 'unasked') AS openers, s.quiet_from, s.quiet_to, s.daily_cap
               FROM agents a LEFT JOIN speaking s ON s.agent_id = a.id"""
        )
        row = await cursor.fetchone()
    if row is None:
        raise CommandRefused(NOBODY)
    usual = asking.parts.usual
    lines = [
        f"timezone: {row['zone'] or 'not known, so UTC'}; it is {_clock(asking.parts.now(), row['zone'])} there",
        f"quiet: {quiet_in_words(row['quiet_from'], row['quiet_to'], usual.get('quiet', ''))}",
        f"openers: {'on' if row['openers'] == 'yes' else 'off'}, I {'may' if row['openers'] == 'yes' else 'do not'} write first"
        + (f", at most {row['daily_cap']} times a day" if row["daily_cap"] is not None and row["openers"] == "yes" else "")
        + (f" ({usual['openers']})" if row["openers"] == "yes" and usual.get("openers") else ""),
        f"memory: {'paused' if row['paused'] else 'on'}",
    ]
    if row["accounts"] > 1:
        lines.append(
            f"cross: {'on, what one linked account knows may be used in direct messages of the other' if row['cross_accounts'] else 'off'}"
        )
    on = row["openers"] == "yes"
    buttons = [
        Button("Time zone", "/settings timezone", ask="time zone"),
        Button("Quiet hours", "/settings quiet", ask="hours"),
        Button("Do not write first", "/settings openers off")
        if on
        else Button("You may write first", "/settings openers on", "good"),
        Button("Resume", "/memory resume", "good") if row["paused"] else Button("Pause", "/memory pause"),
    ]
    if row["accounts"] > 1:
        other = "off" if row["cross_accounts"] else "on"
        buttons.append(Button(f"Cross {other}", f"/settings cross {other}"))
    return Answer("\n".join(lines), tuple(buttons))


def _clock(now: datetime, zone: str) -> str:
    return f"{now.astimezone(zone_of(zone)):%H:%M}"


def quiet_in_words(start: time | None, end: time | None, usual: str) -> str:
    """`22:00-08:00`, `none`, or the usual hours."""
    if start is None or end is None:
        return f"the usual hours{f', {usual}' if usual else ''}"
    return "none" if start == end else f"{start:%H:%M}-{end:%H:%M}"
