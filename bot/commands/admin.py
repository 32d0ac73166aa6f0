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
from bot.commands.context import Asking, CommandRefused, counted
from memory.db import value
from memory.sanitise import clean

WHOM = "Say whom: {} @name, or as platform:realm:user."
LONGEST_NAME = 200
"""Characters of a name or an id."""
DAYS = 30
"""Days that /admin usage reaches back."""
WIPE = "This erases everything of {}, in every place. It cannot be undone. To go ahead: /admin memory delete {} yes"


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
        return Answer(WIPE.format(name, name), (Button("Delete", f"/admin memory delete {name} yes", "danger"),))
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
        raise CommandRefused(WHOM.format(command))
    person = await _person(asking, word)
    async with asking.parts.db.bare() as connection:
        agent = await value(connection, "SELECT known_agent(%s, %s, %s)", (person.platform, person.realm, person.user_id))
    workspace = next(iter(asking.actor.admin_of), None)
    if (
        workspace is not None
        and not asking.actor.operator
        and (person.platform, person.realm) != (asking.where.platform, asking.where.realm)
    ):
        raise CommandRefused("That person is not of this workspace.")
    about = replace(asking, person=person, agent=agent, place=None, argument=rest, workspace=workspace)
    if agent is None or not await _met_here(about):
        raise CommandRefused("I have nothing stored about that person.")
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
        raise CommandRefused(WHOM.format("/admin memory view"))
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
        raise CommandRefused(f"Several people are called {word[:60]}. Name one by mentioning them, or as platform:realm:user.")
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
    whose = about.person.author_id if agent is not None else "everybody" if verdict.workspace is None else "this workspace"
    lines = [f"Model calls of {whose} in the last {DAYS} days" if rows else f"No model calls of {whose} in the last {DAYS} days."]
    for row in rows:
        price = asking.parts.prices.get(row["model"]) or asking.parts.prices.get("default")
        numbers = row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"]
        money = f", {price.micros(*numbers) / 1e6:.4f} in money" if price else ""
        people = f" by {counted(row['people'], 'person', 'people')}" if agent is None else ""
        tokens = f"{numbers[0]:,} tokens read ({numbers[1]:,} cached), {numbers[2]:,} written"
        lines.append(f"  {row['model']}: {counted(row['calls'], 'call')}{people}, {tokens}{money}")
    return Answer("\n".join(lines))


async def pause(asking: Asking) -> Answer:
    """Pause the memory of one person or of everybody, or with `off` end that again. The operator's alone."""
    words = asking.argument.split()
    off = words[1:2] == ["off"]
    command = f"/admin pause{' off' if off else ''}"
    about: Asking | None = None
    if words[:1] != ["all"]:
        if not words:
            raise CommandRefused(
                f"{WHOM.format('/admin pause')} /admin pause all pauses everybody, and `off` at the end ends either."
            )
        about, _ = await whom(asking, "/admin pause")
    async with asking.parts.db.bare() as connection:
        cursor = await connection.execute("SELECT hold(%s, %s) AS agent", (about.agent if about else None, not off))
        held = [row["agent"] for row in await cursor.fetchall()]
    for agent in held:
        await note(replace(about or asking, agent=agent, place=None), command)
        await asking.parts.cache.forget_quietly(agent)
    did = "Memory is on again" if off else "Memory is paused"
    if about is None:
        return Answer(f"{did} for {counted(len(held), 'person', 'people')}.")
    was = "It was not paused by an operator." if off else "It was paused already."
    return Answer(f"{did} for {about.person.author_id}." if held else was)


async def block(asking: Asking) -> Answer:
    """Take nothing more in of somebody, in this workspace (admins) or anywhere (operators), or with `off` again."""
    verdict = asking.allowed("block", somebody=True)
    word, _, rest = asking.argument.strip().partition(" ")
    if not word:
        raise CommandRefused(WHOM.format("/admin block"))
    person, workspace = await _person(asking, word), next(iter(asking.actor.admin_of), None)
    if verdict.workspace is not None and (person.platform, person.realm) != (asking.where.platform, asking.where.realm):
        raise CommandRefused("That person is not of this workspace.")
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
    where = "in this workspace" if verdict.workspace else "everywhere"
    if not done:
        return Answer(f"{person.author_id} was {'not blocked' if off else 'blocked already'} {where}.")
    return Answer(f"{person.author_id} is {'no longer blocked' if off else 'blocked'} {where}.")


async def who(asking: Asking) -> Answer:
    """Who can see what, for everybody to read."""
    asking.allowed("help")
    parts, workspace = asking.parts, asking.where.workspace
    async with parts.db.bare() as connection:
        people = await value(connection, "SELECT people_in(%s, %s)", (asking.where.platform, workspace))
    admins = list(parts.admins.get(workspace, ())) if workspace else []
    told = parts.admins_see_direct
    direct = f"and direct messages within it of those who were told so (since {told})" if told else "direct messages excepted"
    lines = ["Who can see what", "  you: all that is yours in a direct message; elsewhere what may be used there"]
    lines.append("  other people: nothing of yours; in a channel they read what I write there")
    if workspace:
        named = ", ".join(admins) if admins else "nobody"
        lines.append(f"  admins of this workspace ({named}): what came from this workspace, {direct}")
        lines.append(f"  people of this workspace whom I remember: {people}")
    lines.append(f"  operators ({', '.join(parts.operators) or 'at the machine only'}): everything")
    lines.append("Each look of an admin or operator stands in /memory view of the person concerned.")
    return Answer("\n".join(lines))
