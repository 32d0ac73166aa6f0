"""/admin: what operators do across people, and a workspace's admins with what came from there. Every act stands in the log of the person
it concerns, who sees it in /memory view."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from adapters.base import Answer, Button, Person
from bot.commands import erasing, exporting, forgetting, memory
from bot.commands.access import Action, Target, may
from bot.commands.changing import writable
from bot.commands.context import Asking, CommandRefused
from memory.db import value
from memory.sanitise import clean

LONGEST_NAME = 200
"""Characters of a name or an id."""
DAYS = 30
"""Days that /admin usage reaches back."""


async def view(asking: Asking) -> Answer:
    """What is remembered of somebody, as far as the asker may see it."""
    return await _on(asking, "view", "/admin memory view", memory.view)


async def export(asking: Asking) -> Answer:
    """All of that, as files or text."""
    return await _on(asking, "export", "/admin memory export", exporting.export)


async def delete(asking: Asking) -> Answer:
    """Erase somebody (operators), or what came of them from this workspace (admins), after a yes."""
    about, rest = await whom(asking, "/admin memory delete")
    sure = rest.split() == ["yes"]
    verdict = about.allowed("forget")
    name = about.person.author_id
    if verdict.everything and not sure:
        return Answer(
            asking.say("admin.sure", name=name),
            (Button(asking.say("button.delete"), f"/admin memory delete {name} yes", "danger"),),
        )
    if sure:
        await note(about, "/admin memory delete")
    if verdict.everything:
        agent, _ = about.known()
        return Answer(await erasing.erase(about, agent, verdict.role))
    return await forgetting.forget_workspace(about, sure=sure)


async def _on(asking: Asking, action: Action, command: str, body: Callable[[Asking], Awaitable[Answer]]) -> Answer:
    about, rest = await whom(asking, command)
    about.allowed(action)
    about = replace(about, argument=rest)
    await note(about, command)
    return await body(about)


async def whom(asking: Asking, command: str) -> tuple[Asking, str]:
    """The same asking about the person whom its argument begins with, and the rest of the argument. Raises CommandRefused.

    Whom the asker may do nothing to is not looked up either: who is known to the bot is nobody's business.
    """
    word, _, rest = asking.argument.strip().partition(" ")
    if not word:
        raise CommandRefused("admin.whom", command=command)
    person = await _person(asking, word)
    async with asking.parts.db.bare() as connection:
        agent = await value(connection, "SELECT known_agent(%s, %s, %s)", (person.platform, person.realm, person.user_id))
    workspace = next(iter(asking.actor.admin_of), None)
    if (
        workspace is not None
        and not asking.actor.operator
        and (person.platform, person.realm) != (asking.where.platform, asking.where.realm)
    ):
        raise CommandRefused("admin.not_of_here")
    about = replace(asking, person=person, agent=agent, place=None, argument=rest, workspace=workspace)
    if agent is None or not await _met_here(about):
        raise CommandRefused("admin.nobody")
    return about, rest.strip()


async def _met_here(about: Asking) -> bool:
    """Whether an admin may know that the person is known: something of theirs came from the admin's workspace."""
    verdict = may(about.actor, "view", Target(agent=about.agent, workspace=about.workspace))
    if verdict.workspace is None:
        return True
    async with about.open(verdict) as connection:
        return bool(await writable(connection))


async def _person(asking: Asking, word: str) -> Person:
    """`<@123>`, `@name`, `platform:realm:user` or a user's id of this platform."""
    where = asking.where
    if not word.strip("@<>!:") or len(word) > LONGEST_NAME:
        raise CommandRefused("admin.whom", command="/admin memory view")
    if found := re.fullmatch(r"<@!?([^|>]+)(?:\|[^>]*)?>", word):
        return Person(where.platform, where.realm, clean(found[1]), found[1])
    if word.count(":") >= 2:
        platform, realm, user = clean(word).split(":", 2)
        return Person(platform, realm, user, user)
    if not word.startswith("@"):
        return Person(where.platform, where.realm, clean(word), word)
    async with asking.parts.db.bare() as connection:
        cursor = await connection.execute(
            "SELECT * FROM people_called(%s, %s, %s)", (where.platform, where.realm, clean(word[1:]))
        )
        rows = await cursor.fetchall()
    if not asking.actor.operator:
        workspace = next(iter(asking.actor.admin_of), None)
        rows = [row for row in rows if await _met_here(replace(asking, agent=row["agent_id"], place=None, workspace=workspace))]
    if len(rows) > 1:
        raise CommandRefused("admin.several", name=word[:60])
    user = rows[0]["user_id"] if rows else word[1:]
    return Person(where.platform, where.realm, user, user)


async def note(about: Asking, command: str) -> None:
    """Write an act into the log of the person it concerns, where they see it; an admin's under a place of their workspace."""
    verdict = may(about.actor, "view", Target(agent=about.agent, workspace=about.workspace))
    agent, _ = about.known()
    if not verdict.allowed:
        return
    async with about.parts.db.agent(agent, everything=True) as connection:
        await memory.note_act(connection, command, verdict.role, agent, about.parts.now(), about.workspace or "")


async def usage(asking: Asking) -> Answer:
    """What the model calls of a month cost: of everybody (operators) or this workspace (admins), or of one person."""
    about, agent = asking, None
    if asking.argument.strip():
        about, _ = await whom(asking, "/admin usage")
        agent = about.agent
    verdict = asking.allowed("usage", somebody=True)
    if agent is not None:
        await note(about, "/admin usage")
    since = asking.parts.now() - timedelta(days=DAYS)
    async with asking.parts.db.bare() as connection:
        cursor = await connection.execute(
            "SELECT * FROM usage_of(%s, %s, %s, %s)", (agent, asking.where.platform, verdict.workspace, since)
        )
        rows = await cursor.fetchall()
    of = "admin.everybody" if verdict.workspace is None else "admin.this_workspace"
    whose = about.person.author_id if agent is not None else asking.say(of)
    lines = [asking.say("admin.usage" if rows else "admin.no_usage", whose=whose, days=DAYS)]
    for row in rows:
        price = asking.parts.prices.get(row["model"]) or asking.parts.prices.get("default")
        numbers = row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"]
        calls, people = asking.counted("call", row["calls"]), asking.counted("person", row["people"])
        parts = [asking.say("admin.calls_by", calls=calls, people=people) if agent is None else calls]
        parts.append(asking.say("admin.tokens", read=f"{numbers[0]:,}", cached=f"{numbers[1]:,}", written=f"{numbers[2]:,}"))
        parts += [asking.say("admin.money", amount=f"{price.micros(*numbers) / 1e6:.4f}")] if price else []
        lines.append(f"  {row['model']}: {', '.join(parts)}")
    return Answer("\n".join(lines))


async def pause(asking: Asking) -> Answer:
    """Pause the memory of one person or of everybody, or with `off` end that again. The operator's alone."""
    words = asking.argument.split()
    off = words[1:2] == ["off"]
    command = f"/admin pause{' off' if off else ''}"
    about: Asking | None = None
    if words[:1] != ["all"]:
        if not words:
            raise CommandRefused("admin.whom_to_pause")
        about, _ = await whom(asking, "/admin pause")
    async with asking.parts.db.bare() as connection:
        cursor = await connection.execute("SELECT hold(%s, %s) AS agent", (about.agent if about else None, not off))
        held = [row["agent"] for row in await cursor.fetchall()]
    for agent in held:
        await note(replace(about or asking, agent=agent, place=None), command)
        await asking.parts.cache.forget_quietly(agent)
    if about is not None and not held:
        return Answer(asking.say("admin.was_not_paused" if off else "admin.was_paused"))
    whose = about.person.author_id if about else asking.counted("person", len(held))
    return Answer(asking.say("admin.resumed" if off else "admin.paused", whose=whose))


async def block(asking: Asking) -> Answer:
    """Take nothing more in of somebody, in this workspace (admins) or anywhere (operators), or with `off` again."""
    verdict = asking.allowed("block", somebody=True)
    word, _, rest = asking.argument.strip().partition(" ")
    if not word:
        raise CommandRefused("admin.whom", command="/admin block")
    person, workspace = await _person(asking, word), next(iter(asking.actor.admin_of), None)
    if verdict.workspace is not None and (person.platform, person.realm) != (asking.where.platform, asking.where.realm):
        raise CommandRefused("admin.not_of_here")
    off = rest.strip().casefold() == "off"
    async with asking.parts.db.bare() as connection:
        key = (person.platform, person.realm, person.user_id)
        done = await value(
            connection, "SELECT block(%s, %s, %s, %s, %s, %s)", (*key, verdict.workspace or "", not off, asking.parts.now())
        )
        agent = await value(connection, "SELECT known_agent(%s, %s, %s)", key)
    if agent is not None and done:
        about = replace(asking, person=person, agent=agent, place=None, workspace=workspace)
        await note(about, f"/admin block{' off' if off else ''}")
    what = ("unblocked" if off else "blocked") if done else ("not_blocked" if off else "blocked_already")
    return Answer(asking.say(f"admin.{what}_{'here' if verdict.workspace else 'everywhere'}", name=person.author_id))


async def who(asking: Asking) -> Answer:
    """Who can see what, for everybody to read."""
    asking.allowed("help")
    parts, workspace = asking.parts, asking.where.workspace
    async with parts.db.bare() as connection:
        people = await value(connection, "SELECT people_in(%s, %s)", (asking.where.platform, workspace))
    admins = list(parts.admins.get(workspace, ())) if workspace else []
    told = parts.admins_see_direct
    lines = [asking.say("sight.heading"), f"  {asking.say('sight.you')}", f"  {asking.say('sight.others')}"]
    if workspace:
        named = ", ".join(admins) or asking.say("sight.nobody")
        seen = asking.say("sight.admins_direct", who=named, since=told) if told else asking.say("sight.admins", who=named)
        lines += [f"  {seen}", "  " + asking.say("sight.people", n=people)]
    lines.append("  " + asking.say("sight.operators", who=", ".join(parts.operators) or asking.say("sight.at_the_machine")))
    lines.append(asking.say("sight.logged"))
    return Answer("\n".join(lines))
