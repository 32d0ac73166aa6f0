"""/documents: the person's own documents: add, list, read, share and remove."""

import asyncio
from pathlib import Path

from adapters.base import Answer
from bot.commands.changing import changed, lock, writable
from bot.commands.context import NOBODY, Asking, CommandRefused, uncached
from bot.documents import intake
from bot.documents.blocks import Unreadable
from memory import documents as stored
from memory import log
from memory.db import Connection, value
from memory.documents import Document
from memory.forgetting import begin, widen
from memory.log import Actor
from memory.things import brief


async def listed(asking: Asking) -> Answer:
    """The documents that may be used here, the newest first."""
    verdict = asking.allowed("view")
    asking.known()
    zone = await asking.zone()
    async with asking.open(verdict) as connection:
        found = await stored.usable(connection)
    if not found:
        return Answer(asking.say("documents.none"))
    lines = [asking.say("documents.heading")]
    for each in found:
        where = asking.label(each.place_kind, each.place_name)
        pages, at = asking.counted("page", each.pages), asking.when(each.created_at, zone)
        words = f" {asking.say('documents.words_only', left=each.waiting)}" if each.waiting else ""
        lines.append(f"  {each.name}  ({pages}; {at}; {where}){words}")
    return Answer("\n".join([*lines, asking.say("documents.how")]))


async def add(asking: Asking) -> Answer:
    """Take in a file of this machine, by its path; elsewhere there are no paths."""
    verdict = asking.allowed("change")
    agent, place = asking.known()
    if asking.where.platform != "console":
        raise CommandRefused("documents.terminal_only")
    if place is None:
        raise CommandRefused(NOBODY)
    path = Path(asking.argument.strip().strip("'\""))
    if not path.name:
        raise CommandRefused("documents.usage")
    try:
        prepared = await intake.prepare(path.name, await asyncio.to_thread(_bytes_of, path))
    except Unreadable as unreadable:
        return Answer(unreadable.told(path.name, asking.locale))
    async with asking.open(verdict) as connection:
        await begin(connection)
        await lock(connection)
        if await value(connection, "SELECT paused FROM agents"):
            raise CommandRefused("documents.paused")
        await widen(connection, agent, asking.place)
        _, touched = await intake.store(
            connection,
            prepared,
            agent=agent,
            place=place,
            visibility=asking.kind,
            actor=verdict.role,
            action="/documents add",
            at=asking.parts.now(),
        )
        await uncached(asking, [agent, *touched])
    return Answer(asking.say("documents.read", name=prepared.name, pages=asking.counted("page", prepared.pages)))


def _bytes_of(path: Path) -> bytes:
    """A file's content, no more of it than is read. Raises Unreadable where there is none: a folder, a device, nothing."""
    try:
        found = path.expanduser()
        if not found.is_file():
            raise Unreadable("not_there")
        with found.open("rb") as file:
            return file.read(intake.LIMITS.file + 1)
    except (OSError, ValueError, RuntimeError):
        raise Unreadable("not_there") from None


async def read(asking: Asking) -> Answer:
    """A page of a document: `handbook.pdf 12`; without a number the first."""
    verdict = asking.allowed("view")
    asking.known()
    name, _, number = asking.argument.strip().rpartition(" ")
    if not number.isdecimal() or len(number) > 6:
        name, number = asking.argument.strip(), "1"
    async with asking.open(verdict) as connection:
        document = (await _named(asking, await stored.usable(connection, name)))[0]
        parts = await stored.page(connection, document.id, int(number))
    head = asking.say("documents.page", name=document.name, page=int(number), of=document.pages)
    return Answer("\n\n".join([head, *([part.content for part in parts] or [asking.say("documents.no_page")])]))


async def remove(asking: Asking) -> Answer:
    """Erase a document with what was made of it."""
    verdict = asking.allowed("forget")
    agent, _ = asking.known()
    async with asking.open(verdict) as connection:
        await begin(connection)
        await lock(connection)
        found = await _named(asking, await stored.usable(connection, asking.argument.strip()))
        await widen(connection, agent, asking.place)
        touched = await intake.remove(connection, [each.id for each in found])
        for each in found:
            await _note(asking, connection, agent, verdict.role, each, "/documents remove")
        await changed(connection)
        cache = await uncached(asking, [agent, *touched])
    return Answer(" ".join(filter(None, [asking.say("documents.removed", name=found[0].name), cache])))


async def share(asking: Asking) -> Answer:
    """Let a document be used in other places too."""
    return await _share(asking, shareable=True)


async def unshare(asking: Asking) -> Answer:
    """Keep a document to where it came from again."""
    return await _share(asking, shareable=False)


async def _share(asking: Asking, *, shareable: bool) -> Answer:
    verdict = asking.allowed("change")
    agent, _ = asking.known()
    async with asking.open(verdict) as connection:
        await lock(connection)
        found = await _named(asking, await stored.usable(connection, asking.argument.strip()))
        if not {each.place_id for each in found} <= set(await writable(connection)):
            raise CommandRefused("command.in_direct_or_origin")
        for each in found:
            await stored.share(connection, each.id, shareable=shareable)
            await _note(asking, connection, agent, verdict.role, each, "/documents share" if shareable else "/documents unshare")
        await changed(connection)
    return Answer(asking.say("documents.shared" if shareable else "documents.unshared", name=found[0].name))


async def _note(asking: Asking, connection: Connection, agent: int, role: Actor, document: Document, action: str) -> None:
    await log.record(
        connection,
        agent=agent,
        place=document.place_id,
        at=asking.parts.now(),
        actor=role,
        action=action,
        target="document",
        target_id=document.id,
    )


async def _named(asking: Asking, found: list[Document]) -> list[Document]:
    if not asking.argument.strip():
        raise CommandRefused("documents.which")
    if not found:
        raise CommandRefused("documents.no_such", name=brief(asking.argument.strip(), 60))
    return found
