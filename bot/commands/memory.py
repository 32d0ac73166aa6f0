"""/memory view and /memory search: what is remembered, with where and when it came from.

Things are named by a letter and a number: m message, w working context, a archival storage, t timer.
"""

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from bot.commands.context import NOBODY, Asking, counted
from memory import archival_storage, recall_storage
from memory.db import Connection, value
from memory.search import Query
from memory.working_context import SECTIONS

SHOWN = 10
"""Passages in a view; the rest is found by searching."""
PAGE = 5
LONGEST = 300
"""Characters of a hit that are shown."""


async def view(asking: Asking) -> str:
    """The working context with sections, sources and dates, the summary, timers and totals."""
    verdict = asking.allowed("view")
    if asking.agent is None:
        return NOBODY
    zone = await asking.zone()
    async with asking.parts.db.agent(asking.agent, asking.place, everything=verdict.everything) as connection:
        lines = await _working_context(connection, zone, whose="the bot's" if asking.about_another else "my")
        lines += await _summaries(connection)
        lines += await _timers(connection, zone)
        lines += await _passages(connection, zone)
        lines += await _acts_of_others(connection, zone)
        lines += [await _totals(connection, zone)]
    if not verdict.everything:
        lines.insert(0, "What may be used in this place; in a direct message you see everything.\n")
    return "\n".join(lines)


async def search(asking: Asking) -> str:
    """Recall and archival storage, a page of each. `page 2` at the end of the words asks for the second."""
    verdict = asking.allowed("search")
    words, page = _paged(asking.argument)
    if not words:
        return "Say what to look for: /memory search WORDS (and `page 2` at the end for more)."
    if asking.agent is None:
        return NOBODY
    zone = await asking.zone()
    vector = await asking.parts.vector(words)
    query = Query(words, page=page, page_size=PAGE)
    async with asking.parts.db.agent(asking.agent, asking.place, everything=verdict.everything) as connection:
        stored = await archival_storage.search(connection, query, vector=vector)
        said = await recall_storage.search(connection, query, vector=vector)
    lines = []
    if stored.hits:
        lines += [f"Archival storage. {stored.headline}"]
        lines += [f"  a{hit.id}  {when(hit.at, zone)}  {brief(hit.content)}" for hit in stored.hits]
    if said.hits:
        lines += [f"Messages. {said.headline}"]
        lines += [
            f"  m{hit.id}  {when(hit.at, zone)}  {'I' if hit.role == 'assistant' else hit.author or 'you'}: {brief(hit.content)}"
            for hit in said.hits
        ]
    return "\n".join(lines) or ("Nothing found." if page == 1 else f"Nothing on page {page}.")


def when(at: datetime, zone: tzinfo) -> str:
    """A time for people: day and minute, on their clock."""
    return f"{at.astimezone(zone):%d %b %Y %H:%M}"


def brief(text: str, longest: int = LONGEST) -> str:
    """A text on one line, with its length where it is cut."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[:longest]} … ({len(text)} characters)"


def _paged(argument: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.*\S)\s+page\s+(\d{1,4})", argument.strip(), re.IGNORECASE | re.DOTALL)
    return (found[1], max(1, int(found[2]))) if found else (argument.strip(), 1)


def _origin(row: dict[str, Any], zone: tzinfo) -> str:
    place = "direct message" if row["place_kind"] == "direct" else f"#{row['place_name'] or 'channel'}"
    sources: Sequence[int] = row["sources"] or ()
    parts = [when(row["at"], zone), place, *([", ".join(f"m{source}" for source in sources)] if sources else [])]
    return f"({'; '.join(parts)})"


async def _rows(connection: Connection, statement: str, parameters: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    return await (await connection.execute(statement, parameters)).fetchall()


_SOURCES = """(SELECT array_agg(s.message_id ORDER BY s.message_id DESC) FROM
  (SELECT message_id FROM sources WHERE {} = x.id AND role = 'trigger' ORDER BY message_id DESC LIMIT 3) s) AS sources"""


async def _working_context(connection: Connection, zone: tzinfo, *, whose: str) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.section, x.content, x.updated_at AS at, p.kind AS place_kind, p.name AS place_name,
              {_SOURCES.format("entry_id")}
            FROM working_context x JOIN places p ON p.id = x.place_id
            ORDER BY array_position(%s::text[], x.section), x.id""",  # noqa: S608
        (list(SECTIONS),),
    )
    lines = [f"Working context (always before {whose} eyes)"]
    section = ""
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            lines.append(f"  {section}")
        lines.append(f"    w{row['id']}  {brief(row['content'])}  {_origin(row, zone)}")
    return lines if rows else ["Working context: nothing yet."]


async def _passages(connection: Connection, zone: tzinfo) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.content, x.tags, x.created_at AS at, p.kind AS place_kind, p.name AS place_name,
              {_SOURCES.format("passage_id")}
            FROM passages x JOIN places p ON p.id = x.place_id ORDER BY x.id DESC LIMIT %s""",  # noqa: S608
        (SHOWN,),
    )
    if not rows:
        return []
    lines = [f"Archival storage (the newest {len(rows)}; /memory search finds the rest)"]
    for row in rows:
        tags = f" [{', '.join(row['tags'])}]" if row["tags"] else ""
        lines.append(f"    a{row['id']}  {brief(row['content'])}{tags}  {_origin(row, zone)}")
    return lines


async def _summaries(connection: Connection) -> list[str]:
    rows = await _rows(
        connection,
        """SELECT c.summary, p.kind, p.name FROM conversations c JOIN places p ON p.id = c.place_id
           WHERE c.summary <> '' ORDER BY c.id""",
    )
    return [
        f"Summary ({'direct message' if row['kind'] == 'direct' else '#' + row['name']}): {brief(row['summary'], 2000)}"
        for row in rows
    ]


async def _timers(connection: Connection, zone: tzinfo) -> list[str]:
    rows = await _rows(connection, "SELECT id, purpose, due_at, every FROM timers WHERE due_at IS NOT NULL ORDER BY due_at")
    if not rows:
        return []
    lines = ["Timers"]
    for row in rows:
        again = f", every {row['every']}" if row["every"] else ""
        lines.append(f"    t{row['id']}  {when(row['due_at'], zone)}{again}  {brief(row['purpose'])}")
    return lines


async def _acts_of_others(connection: Connection, zone: tzinfo) -> list[str]:
    rows = await _rows(
        connection,
        "SELECT at, actor, action FROM memory_log WHERE actor IN ('operator', 'admin') ORDER BY id DESC LIMIT %s",
        (SHOWN,),
    )
    return (["Acts of operators and admins"] if rows else []) + [
        f"    {when(row['at'], zone)}  {row['actor']}: {row['action']}" for row in rows
    ]


async def _totals(connection: Connection, zone: tzinfo) -> str:
    row = (
        await _rows(
            connection,
            """SELECT (SELECT count(*) FROM messages WHERE searchable) AS messages,
                 (SELECT min(created_at) FROM messages) AS since,
                 (SELECT count(*) FROM passages) AS passages, (SELECT count(*) FROM documents) AS documents""",
        )
    )[0]
    since = f" since {when(row['since'], zone)}" if row["since"] else ""
    documents = f", {counted(row['documents'], 'document')}" if row["documents"] else ""
    messages, passages = counted(row["messages"], "message"), counted(row["passages"], "passage")
    return f"Recall storage: {messages}{since}. Archival storage: {passages}{documents}."


async def note_act(connection: Connection, action: str, asking_role: str, agent: int, at: datetime) -> None:
    """Write an operator's or admin's act where the person sees it; nothing when the agent has no place yet."""
    place = await value(connection, "SELECT place_id FROM conversations ORDER BY id LIMIT 1")
    if place is not None:
        await connection.execute(
            "INSERT INTO memory_log (agent_id, place_id, at, actor, action, target) VALUES (%s, %s, %s, %s, %s, 'everything')",
            (agent, place, at, asking_role, action),
        )
