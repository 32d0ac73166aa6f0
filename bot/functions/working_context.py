"""Changing the working context: what the model always sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from bot.functions import requests
from bot.functions.archival_storage import store
from bot.functions.context import CallContext, Refused
from bot.keeping.decision import Decision, sensitive_kind
from memory import undo, working_context
from memory.working_context import ENTRY_LIMIT, TASK_NOTES, Entry, Section, find, one_line, plain, room

Editable = Literal["persona", "profile", "preferences", "key_facts", "goals", "task_notes"]


async def working_context_append(
    context: CallContext,
    section: Editable,
    content: Annotated[str, Field(description="One fact, one sentence.")],
) -> str:
    """Keep a lasting fact always in view: profile (who the person is), preferences, key_facts (people, places, dates), goals,
    task_notes (at most 10), persona (how you adjust to them).
    """
    content = _checked(content)
    decision = context.weigh(content)
    entries = context.state.entries
    same = [entry for entry in entries if plain(entry.content) == plain(content)]
    if same:
        raise Refused(f"That is there already, in {same[0].section}. Nothing to do.")
    if decision.ask:
        return await requests.ask(context, decision, layer="working_context", section=section, content=content)
    return await append(context, section, content, decision)


async def append(context: CallContext, section: Section, content: str, decision: Decision) -> str:
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
        context.connection, agent=context.claim.agent, place=context.claim.place, visibility=context.visibility, section=section,
        content=content, turn=context.claim.turn, at=context.now, author=decision.author_id,
    )  # fmt: skip
    await context.log("working_context_append", "working_context", entry.id, after=content)
    await context.derive("entry_id", entry.id)
    context.state = replace(context.state, entries=(*context.state.entries, entry))
    return f"Added to {section}.{note}"


async def working_context_replace(
    context: CallContext,
    old: Annotated[str, Field(description="The entry, or words that only it has.")],
    new: Annotated[str, Field(description="The whole new entry.")],
) -> str:
    """Correct one entry."""
    new = _checked(new)
    entry = _only(context, old)
    decision = context.weigh(new, without=entry.id)
    others = [other for other in context.state.entries if other.id != entry.id]
    if any(plain(other.content) == plain(new) for other in others):
        raise Refused("The new text is there already as another entry. Remove the old entry instead.")
    left = room(context.state.entries, entry.section, without=entry.id)
    if left < len(new):
        raise Refused(f"The section {entry.section} has room for {max(left, 0)} characters; this needs {len(new)}. Shorten it.")
    if decision.ask and not sensitive_kind(entry.content, [decision.sensitive] if decision.sensitive else ()):
        return await requests.ask(
            context, decision, layer="working_context", section=entry.section, content=new, replaces=entry.id
        )
    return await rewrite(context, entry, new, decision)


async def rewrite(context: CallContext, entry: Entry, new: str, decision: Decision) -> str:
    """Give an entry a new text that was decided to be kept."""
    was = await undo.snapshot(context.connection, "working_context", entry.id)
    changed = await working_context.update(
        context.connection, entry.id, place=context.claim.place, visibility=context.visibility, content=new, turn=context.claim.turn,
        at=context.now, author=decision.author_id,
    )  # fmt: skip
    await context.log("working_context_replace", "working_context", entry.id, before=entry.content, after=new, row=was)
    await context.derive("entry_id", entry.id)
    context.state = replace(context.state, entries=tuple(changed if e.id == entry.id else e for e in context.state.entries))
    return f"Replaced in {entry.section}."


async def working_context_remove(
    context: CallContext, content: Annotated[str, Field(description="The entry, or words that only it has.")]
) -> str:
    """Remove one entry that is no longer true or wanted."""
    entry = _only(context, content)
    was = await undo.snapshot(context.connection, "working_context", entry.id)
    await working_context.delete(context.connection, entry.id)
    await context.log("working_context_remove", "working_context", entry.id, before=entry.content, row=was)
    context.state = replace(context.state, entries=tuple(e for e in context.state.entries if e.id != entry.id))
    return f"Removed from {entry.section}."


async def _retire(context: CallContext, note: Entry) -> None:
    await store(context, note.content, ["task_notes"], action="working_context_append", came_from=note.id)
    was = await undo.snapshot(context.connection, "working_context", note.id)
    await working_context.delete(context.connection, note.id)
    await context.log("working_context_append", "working_context", note.id, before=note.content, row=was)
    context.state = replace(context.state, entries=tuple(e for e in context.state.entries if e.id != note.id))


def _checked(content: str) -> str:
    content = content.strip()
    if not content:
        raise Refused("The text is empty. Give the fact in one sentence.")
    if len(content) > ENTRY_LIMIT:
        raise Refused(
            f"An entry may have {ENTRY_LIMIT} characters; this has {len(content)}. Shorten it, or use archival_storage_insert."
        )
    return content


def _only(context: CallContext, text: str) -> Entry:
    found = find(context.state.entries, text)
    if not found:
        raise Refused(
            "No entry of the working context contains that. Look at the working context and give the words of one entry."
        )
    if len(found) > 1:
        candidates = "; ".join(f"[{entry.section}] {one_line(entry.content)[:120]}" for entry in found[:5])
        raise Refused(f"{len(found)} entries match. Give words that only one contains: {candidates}")
    return found[0]
