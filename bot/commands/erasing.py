"""/memory forget everything, and the operator's and the admins' deletion of a whole person: what went, and the proof."""

from __future__ import annotations

from adapters.base import Answer, Button
from bot.commands.context import NOBODY, Asking, CommandRefused
from bot.keeping import erasures
from memory import log
from memory.erasure import Erased
from memory.people import find_agent
from memory.proof import KEPT_ON_DISK

NOUNS = {
    "messages": "message",
    "working_context": "entry",
    "passages": "passage",
    "embeddings": "vector",
    "timers": "timer",
    "quotes": "quote_elsewhere",
    "exports": "export_file",
}
"""What is counted of an erasure, by its table."""


async def everything(asking: Asking, *, sure: bool) -> Answer:
    """All that is kept of a person, after a second, explicit yes, in their direct message."""
    verdict = asking.allowed("forget")
    if not sure:
        return Answer(
            asking.say("erasing.sure"),
            (
                Button(asking.say("button.export_first"), "/memory export"),
                Button(asking.say("button.forget_everything"), "/memory forget everything yes", "danger"),
            ),
        )
    agent, _ = asking.known()
    if not verdict.everything:
        raise CommandRefused("command.in_direct")
    return Answer(await erase(asking, agent, verdict.role))


def _files(erased: Erased, asking: Asking) -> str:
    """What is to be said of export files, and to the operator of what is out of reach."""
    files = ", ".join(erased.exports)
    if not asking.about_another:
        if not files:
            return ""
        local = asking.where.platform == "console"
        return asking.say("erasing.files_stay", files=files) if local else asking.say("erasing.files_stay_there")
    said = [asking.say("erasing.exports_stay", files=files)] if files else []
    said += [asking.say("erasing.others_exports_stay", files=", ".join(erased.files))] if erased.files else []
    return " ".join([*said, KEPT_ON_DISK])


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
            raise CommandRefused("erasing.nothing_of", name=person.author_id) if asking.about_another else CommandRefused(NOBODY)
        agent = now_in
    counts, left = erased.removed, erased.left
    if not erased.complete:
        rest = {table: left.get(table, 0) + erased.words.get(table, 0) for table in {**left, **erased.words}}
        rest = {table: number for table, number in rest.items() if number}
        raise CommandRefused("erasing.incomplete", rest=", ".join(f"{table} {number}" for table, number in rest.items()))
    shown = asking.counts({noun: counts.get(table, 0) for table, noun in NOUNS.items()})
    rows = asking.counted("row", sum(counts.values()))
    sentences = [
        asking.say("erasing.done", rows=f"{rows} ({', '.join(shown)})" if shown else rows, tables=len(left)),
        asking.say("erasing.redis_away") if erased.redis_away else "",
        _files(erased, asking),
        "" if asking.about_another else asking.say("erasing.strangers"),
    ]
    return " ".join(filter(None, sentences))
