"""Everything the bot keeps of a person, as JSON and as Markdown to read.

`EXPORTED` says, for each table with personal data, which columns go out and in what order; `LEFT_OUT` says why the rest does not.
A test walks the real schema and fails on a table or column that stands in neither.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from typing import Any, LiteralString

from psycopg import sql

from memory.db import Connection

EXPORTED: Mapping[str, tuple[str, ...]] = {
    "agents": ("id", "created_at", "paused", "held", "cross_accounts", "timezone", "locale", "noticed_at"),
    "identities": ("platform", "realm", "user_id", "display_name", "unreachable_since", "created_at"),
    "conversations": ("id", "place_id", "summary", "summary_tail", "summary_visibility", "summary_from", "summary_to", "lost_at"),
    "working_context": (
        "id",
        "place_id",
        "visibility",
        "shareable",
        "section",
        "content",
        "author_id",
        "turn_id",
        "created_at",
        "updated_at",
    ),
    "passages": (
        "id",
        "place_id",
        "visibility",
        "shareable",
        "document_id",
        "page",
        "heading",
        "author_name",
        "author_id",
        "content",
        "tags",
        "turn_id",
        "created_at",
    ),
    "documents": ("id", "place_id", "visibility", "shareable", "name", "media_type", "sha256", "size", "pages", "created_at"),
    "messages": (
        "id",
        "conversation_id",
        "place_id",
        "visibility",
        "shareable",
        "position",
        "role",
        "kind",
        "author_id",
        "author_name",
        "content",
        "calls",
        "call_id",
        "platform_id",
        "event_id",
        "turn_id",
        "passing",
        "created_at",
    ),
    "timers": (
        "id",
        "place_id",
        "visibility",
        "shareable",
        "kind",
        "purpose",
        "zone",
        "wall_time",
        "every",
        "due_at",
        "turn_id",
        "created_at",
        "name",
        "floating",
    ),
    "speaking": (
        "openers",
        "decided_at",
        "quiet_from",
        "quiet_to",
        "daily_cap",
        "crisis_at",
        "care_at",
        "quiet_until",
        "zone_guess",
    ),
    "openers": ("id", "place_id", "turn_id", "kind", "said", "at"),
    "memory_requests": (
        "id",
        "place_id",
        "visibility",
        "kind",
        "layer",
        "section",
        "replaces",
        "content",
        "tags",
        "messages",
        "turn_id",
        "created_at",
        "until",
    ),
    "sources": ("message_id", "entry_id", "passage_id", "conversation_id", "role"),
    "fetched": ("turn_id", "message_id", "passage_id"),
    "memory_log": ("id", "place_id", "at", "actor", "action", "target", "target_id", "turn_id", "undoes", "message_id", "covers"),
    "memory_log_content": ("log_id", "reason", "before", "after", "row_before"),
    "events": (
        "id",
        "place_id",
        "visibility",
        "kind",
        "origin",
        "source",
        "payload",
        "status",
        "attempts",
        "last_error",
        "turn_id",
        "created_at",
        "done_at",
    ),
    "turns": (
        "id",
        "conversation_id",
        "place_id",
        "origin",
        "state",
        "passes",
        "memory_calls",
        "memory_writes",
        "tokens",
        "replied",
        "started_at",
        "finished_at",
    ),
    "outbox": ("id", "place_id", "platform", "channel", "turn_id", "body", "reply_to", "state", "platform_id", "created_at"),
    "spending": ("day", "tokens", "micros"),
    "usage": ("id", "turn_id", "purpose", "model", "prompt_tokens", "cached_tokens", "completion_tokens", "at"),
}

LEFT_OUT: Mapping[str, str] = {
    "spending.told": "bookkeeping of the budgets",
    "messages.asks": "bookkeeping of the question that waits for a yes or no",
    "messages.said_to": "names somebody else: to whom the bot said what this person's message brought along",
    "turns.in_view": "bookkeeping of forgetting: what stood in the prompt",
    "turns.entries_in_view": "bookkeeping of forgetting: what stood in the prompt",
    "speaking.guess_turn": "bookkeeping of the time zone that waits to be confirmed",
    "speaking.planned": "bookkeeping of the scheduler",
    "speaking.promised": "the operator's rules at the time of the yes",
    "timers.message_id": "bookkeeping of edits and deletions; the message is exported",
    "timers.faults": "bookkeeping of the scheduler",
    "outbox.buttons": "command lines with the numbers of exported timers",
    "outbox.notify": "how the message was sent",
    "outbox.sender": "bookkeeping of the engine",
    "rezoned": "bookkeeping of the scheduler",
    "decisions": "what is to be applied again to a restored backup: numbers and times, no words",
    "links": "codes for linking two accounts, for ten minutes",
    "link_tries": "bookkeeping of such codes, for an hour",
    "embeddings": "numbers computed from the exported texts",
    "unembedded": "what still lacks such numbers",
    "agents.noticed_hosts": "bookkeeping of the notice",
    "agents.next_seq": "bookkeeping of the engine",
    "agents.epoch": "bookkeeping of the engine",
    "agents.version": "bookkeeping of the cache",
    "agents.wake": "bookkeeping of the engine",
    "identities.merged_into": "bookkeeping of linked accounts",
    "conversations.pending_from": "bookkeeping of the queue manager",
    "conversations.fifo_start": "bookkeeping of the queue manager",
    "conversations.next_position": "bookkeeping of the queue manager",
    "conversations.warned": "bookkeeping of the queue manager",
    "conversations.entries_shown": "bookkeeping of the queue manager",
    "messages.withheld": "what the endpoint of the model said of the text",
    "working_context.withheld": "what the endpoint of the model said of the text",
    "messages.searchable": "follows from the kind",
    "messages.tsv": "computed from the text",
    "passages.tsv": "computed from the text",
    "events.seq": "bookkeeping of the engine",
    "events.idem": "bookkeeping of the engine",
    "events.burst_ms": "bookkeeping of the engine",
    "turns.epoch": "bookkeeping of the engine",
    "turns.step": "bookkeeping of the engine",
    "turns.cancel_requested": "bookkeeping of the engine",
    "turns.nudged": "bookkeeping of the engine",
    "outbox.step": "bookkeeping of the engine",
    "outbox.part": "bookkeeping of the engine",
    "outbox.attempts": "bookkeeping of the sender",
    "outbox.not_before": "bookkeeping of the sender",
    "outbox.sending_since": "bookkeeping of the sender",
    "outbox.last_error": "bookkeeping of the sender",
    "outbox.streamed": "bookkeeping of the sender",
}
PLACES = ("id", "platform", "realm", "workspace", "external_id", "kind", "name")

Tables = dict[str, list[dict[str, Any]]]
_PARTLY: Mapping[str, LiteralString] = {
    "agents": "false",
    "identities": "false",
    "speaking": "false",
    "spending": "false",
    "usage": "false",
    "openers": "place_id = ANY (whole_places())",
    "sources": """message_id IN (SELECT id FROM messages) AND (entry_id IS NULL OR entry_id IN (SELECT id FROM working_context))
      AND (passage_id IS NULL OR passage_id IN (SELECT id FROM passages))
      AND (conversation_id IS NULL OR conversation_id IN (SELECT id FROM conversations))""",
    "fetched": "turn_id IN (SELECT id FROM turns) AND (message_id IS NULL OR message_id IN (SELECT id FROM messages))",
    "memory_log_content": "log_id IN (SELECT id FROM memory_log)",
    # Not the names of private places whose shared rows could be seen here, if there were any.
    "places": """id IN (SELECT place_id FROM conversations UNION SELECT place_id FROM messages UNION SELECT place_id FROM working_context
      UNION SELECT place_id FROM passages UNION SELECT place_id FROM documents UNION SELECT place_id FROM timers)""",
}
"""What of the tables that stand under no place goes along when only some places are seen."""


async def collect(connection: Connection, *, partly: bool = False) -> Tables:
    """All rows that the transaction's agent may see at the transaction's place, by table; `places` are those they came from.

    `partly`: the transaction sees some places only, so of what stands under no place goes out what belongs to the rows of those.
    """
    tables: Tables = {}
    for table, columns in {**EXPORTED, "places": PLACES}.items():
        statement = sql.SQL("SELECT {} FROM {} WHERE {} ORDER BY 1, 2").format(
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.Identifier(table),
            sql.SQL(_PARTLY.get(table, "true") if partly else "true"),
        )
        tables[table] = await (await connection.execute(statement)).fetchall()
    return tables


def as_json(tables: Tables, at: datetime) -> str:
    """The whole export, for programs. Times are ISO 8601 with their offset."""
    return (
        json.dumps({"format": "keepsake-export-1", "at": at.isoformat(), **tables}, default=_plain, ensure_ascii=False, indent=1)
        + "\n"
    )


def as_markdown(tables: Tables, at: datetime, say: Callable[..., str], when: Callable[[datetime], str]) -> str:
    """The whole export's content, for people: what is remembered, then what was said. `say` says a line of the catalogue, `when` a time."""
    places = {row["id"]: _place(row, say("place.direct")) for row in tables["places"]}
    elsewhere, speakers = say("export.elsewhere"), {"user": say("who.person")}

    def origin(row: Mapping[str, Any], letter: str, time: str) -> str:
        return f"[{letter}{row['id']}, {when(row[time])}, {places.get(row['place_id'], elsewhere)}]"

    def passage(row: Mapping[str, Any]) -> str:
        tags = f" ({say('export.tags', tags=', '.join(row['tags']))})" if row["tags"] else ""
        return f"{_line(row['content'])}{tags} {origin(row, 'a', 'created_at')}"

    def timer(row: Mapping[str, Any]) -> str:
        again = f", {say('export.every', every=row['every'])}" if row["every"] else ""
        wall = f"{row['wall_time']:%Y-%m-%d %H:%M} {row['zone']}"
        return f"{_line(row['purpose'])} ({wall}{again}, {places.get(row['place_id'], elsewhere)})"

    def message(row: Mapping[str, Any]) -> str:
        speaker = row["author_name"] or speakers.get(row["role"], say("export.bot"))
        return f"{when(row['created_at'])} **{speaker}**: {_line(row['content'])} [m{row['id']}]"

    def chapter(name: str, things: Iterable[str]) -> list[str]:
        return ["", f"## {say(name)}", "", *([f"- {thing}" for thing in things] or [say("export.nothing")])]

    contents = {row["log_id"]: row for row in tables["memory_log_content"]}
    names = ", ".join(f"{row['platform']}:{row['realm']}:{row['user_id']}" for row in tables["identities"])
    lines = [f"# {say('export.title', at=when(at))}"]
    lines += ["", say("export.linked", accounts=names)] if len(tables["identities"]) > 1 else []
    entries = (
        f"({row['section']}) {_line(row['content'])} {origin(row, 'w', 'updated_at')}" for row in tables["working_context"]
    )
    lines += chapter("export.entries", entries)
    lines += chapter("export.passages", map(passage, tables["passages"]))
    files = (say("export.size", name=row["name"], size=row["size"], at=when(row["created_at"])) for row in tables["documents"])
    lines += chapter("export.documents", files)
    lines += chapter("export.timers", map(timer, tables["timers"]))
    summaries = (f"{places.get(row['place_id'], '')}: {row['summary']}" for row in tables["conversations"] if row["summary"])
    lines += chapter("export.summaries", summaries)
    lines += ["", f"## {say('export.messages')}"]
    spoken = [row for row in tables["messages"] if row["kind"] in ("message", "quote")]
    for conversation in dict.fromkeys(row["conversation_id"] for row in spoken):
        own = [row for row in spoken if row["conversation_id"] == conversation]
        lines += ["", f"### {places.get(own[0]['place_id'], elsewhere)}", "", *(f"- {message(row)}" for row in own)]
    changes = (
        f"{when(row['at'])} {row['actor']}: {row['action']} ({row['target']}){_change(contents.get(row['id']))}"
        for row in tables["memory_log"]
    )
    return "\n".join([*lines, *chapter("export.changes", changes)]) + "\n"


def _change(content: Mapping[str, Any] | None) -> str:
    if content is None:
        return ""
    texts = [f'"{_line(content[name])}"' for name in ("before", "after") if content[name]]
    return (f": {' -> '.join(texts)}" if texts else "") + (f"; {_line(content['reason'])}" if content["reason"] else "")


def _place(row: Mapping[str, Any], direct: str) -> str:
    return f"{row['platform']}, {direct if row['kind'] == 'direct' else '#' + (row['name'] or 'channel')}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _plain(value: object) -> str:
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} in an export")
