"""Storing what was decided to be kept: into the working context or archival storage, with its log entry and its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.functions.context import CallContext, Refused
from bot.keeping.decision import Candidate
from memory import archival_storage, sources, undo, working_context
from memory.working_context import TASK_NOTES, Entry, Section, one_line, room


async def store(
    context: CallContext, content: str, tags: Sequence[str], *, action: str, came_from: int | None = None, author: str = ""
) -> str:
    """Insert or merge a text with its log entry and its sources; those of the entry `came_from` where it was one."""
    stored = await archival_storage.insert(
        context.connection,
        agent=context.claim.agent,
        place=context.claim.place,
        visibility=context.visibility,
        content=content,
        tags=tags,
        turn=context.claim.turn,
        at=context.now,
        author=author,
    )
    tags_before = f"tags: {', '.join(stored.tags_before)}" if stored.merged else None
    was = await undo.snapshot(context.connection, "passage", stored.id) if stored.merged else None
    if was is not None:
        was["tags"] = list(stored.tags_before)
    await context.log(action, "passage", stored.id, before=tags_before, after=content, row=was)
    if came_from is None:
        await context.derive("passage_id", stored.id, author=author)
    else:
        await sources.take_over(context.connection, entry=came_from, passage=stored.id)
    state = context.state
    added = 0 if stored.merged else 1
    context.state = replace(state, archival_total=state.archival_total + added, tags=tuple(dict.fromkeys([*state.tags, *tags])))
    return "Merged with a nearly identical text that was there." if stored.merged else "Stored."


async def append(context: CallContext, section: Section, content: str, decision: Candidate) -> str:
    """Store a new entry that was decided to be kept. Raises Refused where there is no room."""
    entries = context.state.entries
    note = f" It stands against: {one_line(decision.conflicts[0])} Replace that if it has changed." if decision.conflicts else ""
    if section == "task_notes":
        notes = [entry for entry in entries if entry.section == "task_notes"]
        while len(notes) >= TASK_NOTES or (notes and room(context.state.entries, section) < len(content)):
            await _retire(context, notes.pop(0))
            note += " The oldest task note went to archival storage (tag task_notes)."
    left = room(context.state.entries, section)
    if left < len(content):
        raise Refused(
            f"The section {section} has room for {max(left, 0)} more characters; this needs {len(content)}. Shorten it, replace or remove an "
            f"entry of {section} that matters less, or store this with archival_storage_insert."
        )
    entry = await working_context.insert(
        context.connection,
        agent=context.claim.agent,
        place=context.claim.place,
        visibility=context.visibility,
        section=section,
        content=content,
        turn=context.claim.turn,
        at=context.now,
        author=decision.author_id,
    )
    await context.log("working_context_append", "working_context", entry.id, after=content)
    await context.derive("entry_id", entry.id, author=decision.author_id)
    context.state = replace(context.state, entries=(*context.state.entries, entry))
    return f"Added to {section}.{note}"


async def rewrite(context: CallContext, entry: Entry, new: str, decision: Candidate) -> str:
    """Give an entry a new text that was decided to be kept."""
    was = await undo.snapshot(context.connection, "working_context", entry.id)
    changed = await working_context.update(
        context.connection,
        entry.id,
        place=context.claim.place,
        visibility=context.visibility,
        content=new,
        turn=context.claim.turn,
        at=context.now,
        author=decision.author_id,
    )
    await context.log("working_context_replace", "working_context", entry.id, before=entry.content, after=new, row=was)
    await context.derive("entry_id", entry.id, author=decision.author_id)
    context.state = replace(context.state, entries=tuple(changed if e.id == entry.id else e for e in context.state.entries))
    return f"Replaced in {entry.section}."


async def _retire(context: CallContext, note: Entry) -> None:
    await store(context, note.content, ["task_notes"], action="working_context_append", came_from=note.id)
    was = await undo.snapshot(context.connection, "working_context", note.id)
    await working_context.delete(context.connection, note.id)
    if was is not None:
        await undo.kept(context.connection, "working_context", note.id, was)
    await context.log("working_context_append", "working_context", note.id, before=note.content, row=was)
    context.state = replace(context.state, entries=tuple(e for e in context.state.entries if e.id != note.id))
