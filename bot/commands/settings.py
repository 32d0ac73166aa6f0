"""/settings: time zone, quiet hours, leave to speak first, and whether linked accounts share what they know."""

import difflib
import re
from datetime import time
from typing import Any
from zoneinfo import available_timezones

from adapters.base import Answer, Button
from bot.commands.changing import changed, lock
from bot.commands.context import NOBODY, Asking, CommandRefused
from memory import log
from memory.agent_state import zone_of
from memory.db import Connection

ON, OFF = frozenset({"on", "yes"}), frozenset({"off", "no"})


async def settings(asking: Asking) -> Answer:
    """Show them, or change one."""
    asking.allowed("settings")
    if asking.agent is None:
        return Answer(asking.say(NOBODY))
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
    return Answer(asking.say("settings.usage"))


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
        raise CommandRefused("settings.which_zone")
    if near:
        raise CommandRefused("settings.zone_meant", name=name[:40], near=by_name.get(near[0], near[0]))
    raise CommandRefused("settings.no_zone", name=name[:40])


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
        raise CommandRefused("settings.hours") from None
    if start == end:
        raise CommandRefused("settings.same_hours")
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
            raise CommandRefused("settings.not_linked")
        if not asking.own_direct:
            raise CommandRefused("command.in_direct")
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
    on = row["openers"] == "yes"
    zone, clock = row["zone"], f"{asking.parts.now().astimezone(zone_of(row['zone'])):%H:%M}"
    lines = [
        asking.say("settings.zone", zone=zone, clock=clock) if zone else asking.say("settings.zone_unknown", clock=clock),
        asking.say("settings.quiet", hours=_quiet(asking, row["quiet_from"], row["quiet_to"])),
        _openers(asking, row["daily_cap"]) if on else asking.say("settings.openers_off"),
        asking.say("settings.memory_paused" if row["paused"] else "settings.memory_on"),
    ]
    if row["accounts"] > 1:
        lines.append(asking.say("settings.cross_on" if row["cross_accounts"] else "settings.cross_off"))
    buttons = [
        Button(asking.say("button.zone"), "/settings timezone", ask=asking.say("ask.zone")),
        Button(asking.say("button.quiet"), "/settings quiet", ask=asking.say("ask.hours")),
        Button(asking.say("button.no_openers"), "/settings openers off")
        if on
        else Button(asking.say("button.openers"), "/settings openers on", "good"),
        asking.pause_or_resume(paused=row["paused"]),
    ]
    if row["accounts"] > 1:
        other = "off" if row["cross_accounts"] else "on"
        buttons.append(Button(asking.say(f"button.cross_{other}"), f"/settings cross {other}"))
    return Answer("\n".join(lines), tuple(buttons))


def _openers(asking: Asking, most: int | None) -> str:
    if not asking.parts.openers:
        return asking.say("settings.openers_switched_off")
    return asking.say("settings.openers_on") if most is None else asking.say("settings.openers_capped", n=most)


def _quiet(asking: Asking, start: time | None, end: time | None) -> str:
    """`22:00-08:00`, `none`, or the usual hours."""
    if start is None or end is None:
        return asking.say("settings.quiet_usual", hours=asking.parts.quiet)
    return asking.say("settings.quiet_none") if start == end else f"{start:%H:%M}-{end:%H:%M}"
