"""Asking before sensitive things are stored: a request waits for the person's own yes or no, for its time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bot.functions.context import CallContext, Refused
from bot.keeping.consent import unquoted, yes_or_no
from bot.keeping.decision import Decision, Layer, Rules, content_words
from memory import redaction

WORDS = {
    "health": "their health", "sexuality": "their sexuality", "religion": "their beliefs", "politics": "their politics",
    "ethnicity": "their origin", "union": "a trade union", "crime": "crime and justice", "finances": "their finances",
    "biometrics": "their body's data",
}  # fmt: skip


async def ask(
    context: CallContext,
    decision: Decision,
    *,
    layer: Layer,
    content: str,
    section: str = "",
    tags: Sequence[str] = (),
    replaces: int | None = None,
) -> str:
    """Keep a candidate until the person has answered; the model is told to ask."""
    kind = decision.sensitive or ""
    own = [m for m in context.state.queue if m.role == "user" and m.kind == "message"]
    cursor = await context.connection.execute(
        "SELECT id FROM memory_requests WHERE content = %s AND until > %s ORDER BY id LIMIT 1", (content, context.now)
    )
    row = await cursor.fetchone()
    if row is None:
        cursor = await context.connection.execute(
            """INSERT INTO memory_requests (agent_id, place_id, visibility, kind, layer, section, replaces, content, tags, messages, turn_id,
                 created_at, until) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id""",
            (context.claim.agent, context.claim.place, context.visibility, kind, layer, section, replaces, content, list(tags),
             [m.id for m in own[-1:]], context.claim.turn, context.now, context.now + timedelta(seconds=context.rules.answer_within)),
        )  # fmt: skip
        row = await cursor.fetchone()
    assert row is not None
    context.unfinished = True
    return (
        f"Not stored: it is about {WORDS.get(kind, kind)}, which needs the person's yes. Ask them now, plainly and in their language, "
        f"whether you may remember it, naming what. When they have answered, call answer_memory_request with request {row['id']}."
    )


async def answer_memory_request(context: CallContext, request: int, agreed: bool) -> str:
    """After the person's yes or no to your question about something sensitive: store it, or take it back."""
    # Here, as those modules ask through this one.
    from bot.functions import archival_storage, working_context

    cursor = await context.connection.execute("SELECT * FROM memory_requests WHERE id = %s", (request,))
    row = await cursor.fetchone()
    if row is None or row["until"] <= context.now:
        raise Refused("There is no such request any more. If the person wants it remembered, store it again and ask.")
    said = _said_since(context, row["created_at"])
    if said is not agreed:
        raise Refused(
            "The person has not plainly said that in answer to your question. Ask again for a yes or no, or let it be."
            if said is None else "The person said the opposite."
        )  # fmt: skip
    if agreed and not await _was_asked(context, row):
        raise Refused(
            "The yes may be to something else: your last message before it did not ask this. Ask again, naming what it is: "
            f"{row['content']}"
        )
    await context.connection.execute("DELETE FROM memory_requests WHERE id = %s", (request,))
    if not agreed:
        context.state = await redaction.redact(
            context.connection,
            context.state,
            messages=row["messages"],
            turn=row["turn_id"],
            at=context.now,
            by=context.claim.turn,
        )
        return "Not stored, and taken out of the conversation too. Do not mention it again."
    # A secret stays a secret, whatever was agreed to.
    context.rules, rules = Rules(), context.rules
    try:
        decision = context.weigh(row["content"], without=row["replaces"])
    finally:
        context.rules = rules
    if row["layer"] == "archival_storage":
        return await archival_storage.store(
            context, row["content"], row["tags"], action="archival_storage_insert", author=decision.author_id
        )
    entry = next((each for each in context.state.entries if each.id == row["replaces"]), None)
    if entry is not None:
        return await working_context.rewrite(context, entry, row["content"], decision)
    return await working_context.append(context, row["section"], row["content"], decision)


async def _was_asked(context: CallContext, row: Mapping[str, Any]) -> bool:
    """Whether what the bot said last before the yes was the question, or names what the question is about."""
    answered = max(event.created_at for event in context.claim.events if event.kind == "message")
    cursor = await context.connection.execute(
        """SELECT turn_id, content FROM messages WHERE conversation_id = %s AND role = 'assistant' AND kind = 'message' AND created_at <= %s
           ORDER BY position DESC LIMIT 1""",
        (context.claim.conversation, answered),
    )
    last = await cursor.fetchone()
    if last is None:
        return False
    return last["turn_id"] == row["turn_id"] or bool(content_words(last["content"]) & content_words(row["content"]))


def _said_since(context: CallContext, asked: datetime) -> bool | None:
    """What the person answered in this turn, after the question: the last of their messages, or its first part."""
    if context.claim.origin != "person":
        return None
    texts = [_text(event.payload) for event in context.claim.events if event.kind == "message" and event.created_at > asked]
    if not texts or not texts[-1].strip():
        return None
    whole = yes_or_no(texts[-1])
    if whole is not None:
        return whole
    parts = [yes_or_no(part) for part in re.split(r"[,.;:!?\n–—-]+\s*", texts[-1]) if part.strip()]
    # `Yes, please remember that` is a yes; `yes and no, I don't know` is neither.
    return parts[0] if parts and parts[0] is not None and (not parts[0]) not in parts[1:] else None


def _text(payload: Any) -> str:
    return unquoted(str(payload.get("text", "")))
