"""Asking before sensitive things are stored: a request waits for the person's own yes or no, for its time.

The bot puts the question itself, at the end of the turn that a request's `turn_id` names, and the answer is the person's own
(`bot.keeping.consent`): the model says neither for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from bot.functions import storing
from bot.functions.context import CallContext, Refused
from bot.keeping import consent
from bot.keeping.decision import Candidate, KeepingRules, Layer
from memory import forgetting

WORDS = {
    "health": "their health",
    "sexuality": "their sexuality",
    "religion": "their beliefs",
    "politics": "their politics",
    "ethnicity": "their origin",
    "union": "a trade union",
    "crime": "crime and justice",
    "finances": "their finances",
    "biometrics": "their body's data",
}


async def ask(
    context: CallContext,
    decision: Candidate,
    *,
    layer: Layer,
    content: str,
    section: str = "",
    tags: Sequence[str] = (),
    replaces: int | None = None,
) -> str:
    """Keep a candidate until the person has answered the question that the bot puts. Raises Refused where there is nobody to ask."""
    kind = decision.sensitive or ""
    if not context.claim.addressed:
        raise Refused(
            f"It is about {WORDS.get(kind, kind)}, which needs the person's yes, and they are not talking to you now. Leave it."
        )
    # All that they wrote in one go: a no takes it back.
    cursor = await context.connection.execute(
        "SELECT id FROM messages WHERE turn_id = %s AND role = 'user' AND kind = 'message' ORDER BY position",
        (context.claim.turn,),
    )
    own = [each["id"] for each in await cursor.fetchall()]
    cursor = await context.connection.execute(
        """UPDATE memory_requests SET turn_id = %s, messages = messages || ARRAY(SELECT unnest(%s::bigint[]) EXCEPT SELECT unnest(messages))
           WHERE id = (SELECT min(id) FROM memory_requests WHERE content = %s AND place_id = %s AND until > %s) RETURNING id""",
        (context.claim.turn, own, content, context.claim.place, context.now),
    )
    row = await cursor.fetchone()
    if row is None:
        cursor = await context.connection.execute(
            """INSERT INTO memory_requests (agent_id, place_id, visibility, kind, layer, section, replaces, content, tags, messages, turn_id,
                 created_at, until) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id""",
            (
                context.claim.agent,
                context.claim.place,
                context.visibility,
                kind,
                layer,
                section,
                replaces,
                content,
                list(tags),
                own,
                context.claim.turn,
                context.now,
                context.now + timedelta(seconds=context.rules.answer_within),
            ),
        )
        row = await cursor.fetchone()
    assert row is not None
    context.unfinished = True
    context.asks.add("memory")
    return (
        f"Not stored: it is about {WORDS.get(kind, kind)}, which needs the person's yes. The question whether you may remember it is put to "
        f"them below your reply; do not ask it yourself, nor anything else. When they have answered yes or no, call answer_memory_request "
        f"with request {row['id']}."
    )


async def answer_memory_request(context: CallContext, request: int, agreed: bool) -> str:
    """After the person's yes or no to the question about something sensitive."""
    cursor = await context.connection.execute("SELECT * FROM memory_requests WHERE id = %s", (request,))
    row = await cursor.fetchone()
    if row is None or row["until"] <= context.now:
        raise Refused("There is no such request any more. If the person wants it remembered, store it again and ask.")
    answered = await consent.answer(context.connection, context.claim, "memory")
    if answered is None or answered.turn != row["turn_id"]:
        raise Refused(
            "The person has not plainly said yes or no to that question, or something else was said since. Let it be; only if they want it "
            "remembered, store it again, and they are asked again."
        )
    if answered.yes is not agreed:
        raise Refused("The person said the opposite.")
    await context.connection.execute("DELETE FROM memory_requests WHERE id = %s", (request,))
    if not agreed:
        context.state = await forgetting.redact(
            context.connection,
            context.state,
            messages=row["messages"],
            about=row["content"],
            at=context.now,
            by=context.claim.turn,
        )
        return "Not stored, and taken out of the conversation too. Do not mention it again."
    # A secret stays a secret, whatever was agreed to.
    context.rules, rules = KeepingRules(), context.rules
    try:
        decision = context.weigh(row["content"], tags=row["tags"], without=row["replaces"])
    finally:
        context.rules = rules
    if row["layer"] == "archival_storage":
        return await storing.store(
            context, row["content"], row["tags"], action="archival_storage_insert", author=decision.author_id
        )
    entry = next((each for each in context.state.entries if each.id == row["replaces"]), None)
    if entry is not None:
        return await storing.rewrite(context, entry, row["content"], decision)
    return await storing.append(context, row["section"], row["content"], decision)
