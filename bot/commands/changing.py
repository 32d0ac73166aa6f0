"""/memory correct, share, unshare and undo: changes that a person makes, each with what was before, so that each can be taken back.

What is corrected in another place than where it came from counts as said here, so a correction typed in a direct message never shows up
in a channel (rule 5 of the design).
"""

from typing import Any

from adapters.base import Answer, Button
from bot.commands.context import NOBODY, Asking, CommandRefused
from bot.commands.memory import not_there
from bot.keeping.decision import Said, others_words
from memory import log, undo
from memory.db import Connection, value
from memory.places import strictest
from memory.sanitise import clean
from memory.things import LETTERS, Thing, brief, thing
from memory.undo import Change
from memory.working_context import ENTRY_LIMIT, entries, plain, room

PASSAGE_LIMIT = 8000
"""Characters of one text of archival storage."""


async def correct(asking: Asking) -> Answer:
    """Give an entry of the working context or a passage another text."""
    verdict = asking.allowed("change")
    agent, place = asking.known()
    word, _, text = asking.argument.strip().partition(" ")
    wanted, text = thing(word), clean(text).strip()
    if wanted is None or not text:
        raise CommandRefused("correct.usage")
    if wanted.letter not in "wa":
        raise CommandRefused("correct.said")
    async with asking.open(verdict) as connection:
        await lock(connection)
        was = await undo.snapshot(connection, wanted.target, wanted.number)
        if was is None:
            raise not_there(wanted)
        await _fits(connection, wanted, was, text)
        here = was["place_id"] == place
        now = {
            **was,
            "content": text,
            "place_id": was["place_id"] if here else place,
            "shareable": was["shareable"] and here,
            "visibility": strictest([was["visibility"], asking.kind]) if here else asking.kind,
        }
        if "updated_at" in now:
            now["updated_at"] = asking.parts.now().isoformat()
        await undo.restore(connection, agent, wanted.target, wanted.number, now)
        number = await log.record(
            connection,
            agent=agent,
            place=now["place_id"],
            at=asking.parts.now(),
            actor=verdict.role,
            action="/memory correct",
            target=wanted.target,
            target_id=wanted.number,
            before=was["content"],
            after=text,
            row=was,
        )
        await changed(connection)
    said = asking.say("correct.done" if here else "correct.done_here", thing=wanted, text=brief(text))
    # By its number: pressed late, it must not take back what came after.
    return Answer(said, (Button(asking.say("button.undo"), f"/memory undo {number}"),))


async def _fits(connection: Connection, wanted: Thing, was: dict[str, Any], text: str) -> None:
    limit = ENTRY_LIMIT if wanted.letter == "w" else PASSAGE_LIMIT
    if len(text) > limit:
        raise CommandRefused("correct.too_long", thing=wanted, limit=limit, length=len(text))
    if wanted.letter == "w":
        every = await entries(connection)
        if any(entry.id != wanted.number and plain(entry.content) == plain(text) for entry in every):
            raise CommandRefused("correct.twice", thing=wanted)
        left = room(every, was["section"], without=wanted.number)
        if left < len(text):
            raise CommandRefused("correct.no_room", section=was["section"], left=max(left, 0), length=len(text))


async def share(asking: Asking) -> Answer:
    """Let one thing be used in other places too."""
    return await _share(asking, shareable=True)


async def unshare(asking: Asking) -> Answer:
    """Keep one thing to where it came from again."""
    return await _share(asking, shareable=False)


async def _share(asking: Asking, *, shareable: bool) -> Answer:
    verdict = asking.allowed("change")
    agent, _ = asking.known()
    command = "/memory share" if shareable else "/memory unshare"
    if (wanted := thing(asking.argument.strip())) is None:
        raise CommandRefused("share.which", command=command)
    async with asking.open(verdict) as connection:
        await lock(connection)
        was = await undo.snapshot(connection, wanted.target, wanted.number)
        if was is None:
            raise not_there(wanted)
        if was["shareable"] == shareable:
            raise CommandRefused("share.already" if shareable else "share.not_shared", thing=wanted)
        content = await _content(connection, wanted)
        if shareable and (whose := await _somebody_else(connection, wanted, content or "")):
            raise CommandRefused("share.others_words", whose=whose)
        place = await value(connection, f"SELECT place_id FROM {undo.TABLES[wanted.target]} WHERE id = %s", (wanted.number,))  # noqa: S608
        if place not in await writable(connection):
            raise CommandRefused("command.in_direct_or_origin")
        await undo.restore(connection, agent, wanted.target, wanted.number, {**was, "shareable": shareable})
        await log.record(
            connection,
            agent=agent,
            place=place,
            at=asking.parts.now(),
            actor=verdict.role,
            action=command,
            target=wanted.target,
            target_id=wanted.number,
            before=content,
            after=content,
            row=was,
        )
        await changed(connection)
    if shareable:
        return Answer(
            asking.say("share.shared", thing=wanted), (Button(asking.say("button.unshare"), f"/memory unshare {wanted}"),)
        )
    return Answer(asking.say("share.unshared", thing=wanted))


async def _somebody_else(connection: Connection, wanted: Thing, content: str) -> str:
    """Whose words a thing holds, if they are not the person's: a quote, what was noted as theirs, or what repeats a quote of its turn."""
    own = "SELECT platform || ':' || realm || ':' || user_id FROM identities"
    if wanted.letter != "t":
        column = "CASE WHEN kind = 'quote' THEN author_id ELSE '' END" if wanted.letter == "m" else "author_id"
        author = await value(
            connection,
            f"SELECT {column} FROM {undo.TABLES[wanted.target]} WHERE id = %s AND author_id NOT IN ({own})",  # noqa: S608 - names of ours
            (wanted.number,),
        )
        if author:
            return str(author)
    cursor = await connection.execute(
        f"""SELECT q.author_id, q.author_name, q.content, q.kind FROM messages q JOIN {undo.TABLES[wanted.target]} x ON x.turn_id = q.turn_id
            WHERE x.id = %s AND q.id <> x.id AND (q.kind = 'quote' OR (q.kind = 'message' AND q.role = 'user'))""",  # noqa: S608 - as above
        (wanted.number,),
    )
    said = [(row["kind"], Said(row["content"], row["author_id"], row["author_name"])) for row in await cursor.fetchall()]
    mine = {row["author"] for row in await (await connection.execute(f"SELECT own AS author FROM ({own}) a(own)")).fetchall()}  # noqa: S608
    others = [each for kind, each in said if kind == "quote" and each.author_id not in mine]
    found = others_words(content, [each for _, each in said if each not in others], others)
    return (found.author_id or found.author_name) if found else ""


async def take_back(asking: Asking) -> Answer:
    """Undo the last change, or the one of a number. An undoing can be undone by its own number."""
    verdict = asking.allowed("change")
    agent, _ = asking.known()
    word = asking.argument.strip()
    if word and not (word.isdecimal() and len(word) <= 18):
        raise CommandRefused("undo.usage")
    async with asking.open(verdict) as connection:
        await lock(connection)
        change = undo.latest(await undo.history(connection), int(word) if word else None)
        if change is None:
            raise CommandRefused("undo.no_change", number=word) if word else CommandRefused("undo.nothing")
        said, number = await _take_back(asking, connection, agent, verdict.role, change)
        await changed(connection)
    return Answer(said, (Button(asking.say("button.undo_that"), f"/memory undo {number}"),))


async def _take_back(asking: Asking, connection: Connection, agent: int, role: log.Actor, change: Change) -> tuple[str, int]:
    if change.undone:
        raise CommandRefused("undo.undone", number=change.id)
    if not undo.reversible(change):
        raise CommandRefused("undo.gone", number=change.id)
    assert change.target_id is not None
    thing_of = Thing(LETTERS[change.target], change.target_id)
    now = await undo.snapshot(connection, change.target, change.target_id)
    content = await _content(connection, thing_of)
    if content != change.after and change.target != "message":
        raise CommandRefused("undo.changed_since", thing=thing_of)
    before = change.row_before
    place = await _place(connection, before or now, thing_of)
    if place not in await writable(connection):
        raise CommandRefused("command.in_direct_or_origin")
    await undo.restore(connection, agent, change.target, change.target_id, before)
    back = await _content(connection, thing_of)
    number = await log.record(
        connection,
        agent=agent,
        place=place,
        at=asking.parts.now(),
        actor=role,
        action="/memory undo",
        target=change.target,
        target_id=change.target_id,
        before=content,
        after=back,
        row=now,
        undoes=change.id,
    )
    if back is None:
        return asking.say("undo.removed", thing=thing_of), number
    return asking.say("undo.back" if content is None else "undo.reads", thing=thing_of, text=brief(back)), number


async def _content(connection: Connection, wanted: Thing) -> str | None:
    """What a thing says; None when it is not there, or is a timer that does not wait any more."""
    column, table = undo.CONTENT[wanted.target], undo.TABLES[wanted.target]
    waits = " AND due_at IS NOT NULL" if wanted.letter == "t" else ""
    found = await value(connection, f"SELECT {column} FROM {table} WHERE id = %s{waits}", (wanted.number,))  # noqa: S608 - names of ours
    return None if found is None else str(found)


async def _place(connection: Connection, row: Any, wanted: Thing) -> int:
    if row is not None and "place_id" in row:
        return int(row["place_id"])
    return int(await value(connection, f"SELECT place_id FROM {undo.TABLES[wanted.target]} WHERE id = %s", (wanted.number,)))  # noqa: S608


async def writable(connection: Connection) -> list[int]:
    """The places whose rows may be made and changed from here."""
    return list(await value(connection, "SELECT writable_places()"))


async def lock(connection: Connection) -> None:
    """The lock that every step's commit takes: no turn changes anything while a person does. Raises CommandRefused for who was erased."""
    if await value(connection, "SELECT id FROM agents FOR UPDATE") is None:
        raise CommandRefused(NOBODY)


async def changed(connection: Connection) -> None:
    """A running turn builds its prompt anew before it may commit."""
    await connection.execute("UPDATE agents SET version = version + 1")
