"""Changing the working context: what the model always sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from bot.functions import requests, storing
from bot.functions.context import CallContext, Refused
from bot.keeping.decision import sensitive_kind
from memory import undo, working_context
from memory.working_context import ENTRY_LIMIT, Entry, find, one_line, plain, room

OWN = ("persona", "task_notes")
"""Sections of the agent's own notes, which nobody needs to have said."""
Editable = Literal["persona", "profile", "preferences", "key_facts", "goals", "task_notes"]


async def working_context_append(
    context: CallContext,
    content: Annotated[str, Field(description="One sentence that names its subject.")],
    section: Editable = "key_facts",
) -> str:
    """Keep a lasting fact: profile (who they are), preferences, key_facts, goals, task_notes, persona (how you adjust to them)."""
    content = _checked(content)
    same = [entry for entry in context.state.entries if plain(entry.content) == plain(content)]
    if same:
        return f"That is there already, in {same[0].section}."  # what is wanted is so: done, and not failed
    decision = context.weigh(content, fact=section not in OWN)
    if decision.ask:
        return await requests.ask(context, decision, layer="working_context", section=section, content=content)
    return await storing.append(context, section, content, decision)


async def working_context_replace(
    context: CallContext,
    old: Annotated[str, Field(description="Words that only this entry has.")],
    new: Annotated[str, Field(description="The whole new entry.")],
) -> str:
    """Correct one entry."""
    new = _checked(new)
    entry = _only(context, old)
    decision = context.weigh(new, without=entry.id, fact=entry.section not in OWN)
    others = [other for other in context.state.entries if other.id != entry.id]
    if plain(entry.content) == plain(new):
        return f"That is there already, in {entry.section}."
    if any(plain(other.content) == plain(new) for other in others):
        raise Refused("The new text is there already as another entry. Remove the old entry instead.")
    left = room(context.state.entries, entry.section, without=entry.id)
    if left < len(new):
        raise Refused(f"The section {entry.section} has room for {max(left, 0)} characters; this needs {len(new)}. Shorten it.")
    if decision.ask and not sensitive_kind(entry.content, [decision.sensitive] if decision.sensitive else ()):
        return await requests.ask(
            context, decision, layer="working_context", section=entry.section, content=new, replaces=entry.id
        )
    return await storing.rewrite(context, entry, new, decision)


async def working_context_remove(
    context: CallContext, content: Annotated[str, Field(description="Words that only this entry has.")]
) -> str:
    """Remove an entry that is no longer true or wanted."""
    entry = _only(context, content)
    was = await undo.snapshot(context.connection, "working_context", entry.id)
    await working_context.delete(context.connection, entry.id)
    await context.log("working_context_remove", "working_context", entry.id, before=entry.content, row=was)
    context.state = replace(context.state, entries=tuple(e for e in context.state.entries if e.id != entry.id))
    return f"Removed from {entry.section}. What was said of it is still kept: if they want that gone, call forget; else do not say it is forgotten."


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
