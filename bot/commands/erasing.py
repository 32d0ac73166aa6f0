"""/memory forget everything, and the operator's and the admins' deletion of a whole person: what went, and the proof."""

from __future__ import annotations

from adapters.base import Answer, Button
from bot.commands.context import NOBODY, Asking, CommandRefused, counted
from bot.keeping import erasures
from memory import log
from memory.erasure import Erased
from memory.people import find_agent
from memory.proof import KEPT_ON_DISK

AWAY = "(Redis is away; what it still holds is no longer used and vanishes within an hour.)"
SURE = (
    "This erases everything I know about you, in every place: messages, memories, timers, unsent replies. It cannot be undone, "
    "and /memory export keeps a copy for you first. To go ahead: /memory forget everything yes"
)


async def everything(asking: Asking, *, sure: bool) -> Answer:
    """All that is kept of a person, after a second, explicit yes, in their direct message."""
    verdict = asking.allowed("forget")
    if not sure:
        return Answer(
            SURE,
            (Button("Export first", "/memory export"), Button("Forget everything", "/memory forget everything yes", "danger")),
        )
    agent, _ = asking.known()
    if not verdict.everything:
        raise CommandRefused("Ask for that in a direct message to me.")
    return Answer(await erase(asking, agent, verdict.role))


def _files(erased: Erased, asking: Asking) -> str:
    """What is to be said of export files, and to the operator of what is out of reach."""
    local = asking.about_another or asking.where.platform == "console"
    said = ""
    if erased.exports:
        where = f": {', '.join(erased.exports)}" if local else " on the bot's machine; its operator can delete it"
        said += (
            f" Files that were exported before stay, as your own copy{where}."
            if not asking.about_another
            else f" Exports stay{where}."
        )
    if erased.files and asking.about_another:
        said += f" Exports of other people that hold words of theirs stay: {', '.join(erased.files)}."
    return said + (f" {KEPT_ON_DISK}" if asking.about_another else "")


async def erase(asking: Asking, agent: int, role: log.Actor) -> str:
    """Erase a person and prove it: rows, vectors, timers, waiting events, unsent replies, quoted words elsewhere, cache keys."""
    parts = asking.parts
    assert role != "agent"
    person = asking.person
    while True:
        erased = await erasures.erase(
            parts.db, parts.cache, parts.data, agent, actor=role, key=parts.erasure_key, now=parts.now()
        )
        if erased.removed.get("identities"):
            break
        # The agent was gone: erased by another request, or linked into another one that has it all.
        now_in = await find_agent(parts.db, person.platform, person.realm, person.user_id)
        if now_in is None or now_in == agent:
            raise CommandRefused(f"Nothing is kept of {person.author_id}." if asking.about_another else NOBODY)
        agent = now_in
    counts, left = erased.removed, erased.left
    cached = f" {AWAY}" if erased.redis_away else ""
    if not erased.complete:
        rest = {table: left.get(table, 0) + erased.words.get(table, 0) for table in {**left, **erased.words}}
        rest = {table: number for table, number in rest.items() if number}
        raise CommandRefused(f"The erasure is incomplete: {rest} rows are left. Tell the operator, and ask again.")
    total = sum(counts.values())
    shown = ", ".join(
        counted(counts[table], one, many)
        for table, one, many in (
            ("messages", "message", "messages"),
            ("working_context", "entry of the working context", "entries of the working context"),
            ("passages", "passage", "passages"),
            ("embeddings", "vector", "vectors"),
            ("timers", "timer", "timers"),
            ("quotes", "quote elsewhere", "quotes elsewhere"),
            ("exports", "file of an export", "files of exports"),
        )
        if counts.get(table)
    )
    return (
        f"Everything is erased: {counted(total, 'row')}{f' ({shown})' if shown else ''}. I looked again in {len(left)} tables and found "
        f"nothing left, neither by name nor by its rarest words.{cached}{_files(erased, asking)}"
        + ("" if asking.about_another else " If you write to me again, we begin as strangers.")
    )
