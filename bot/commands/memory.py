"""/memory view and /memory search: what is remembered, with where and when it came from."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from adapters.base import Answer, Button
from bot.commands import accounts, quoted
from bot.commands.accounts import IN_ACCOUNT, Account
from bot.commands.context import NOBODY, Asking, CommandRefused, counted
from bot.commands.paging import page_of, paged, turning
from memory import archival_storage, undo
from memory.db import Connection, value
from memory.places import place_label
from memory.search import Page, Query, search_messages
from memory.things import LETTERS, Thing, brief, thing, when
from memory.working_context import SECTIONS

SHOWN = 10
"""Passages in a view; the rest is found by searching."""
PAGE = 5
WHOLE = 1200
"""Characters shown of one thing that is looked at alone, and of a summary."""
WITHHELD = "set aside: the content filter of the model's provider refuses it, so the model does not see it; correct or forget it"
CHANGES = 5
"""Changes of one thing that are shown with it."""


async def view(asking: Asking) -> Answer:
    """The working context with sections, sources and dates, the summaries, timers and totals; or one thing by its number."""
    verdict = asking.allowed("view")
    words, page = paged(asking.argument)
    if words.casefold() == "quotes" or asking.agent is None:
        return await quoted.view(asking, page)
    zone = await asking.zone()
    if words:
        if (wanted := thing(words)) is None:
            raise CommandRefused("Say nothing, or one number: /memory view w3. /memory search looks for words.")
        return await _one(asking, wanted, zone)
    async with asking.open(verdict) as connection:
        lines = []
        for heading, account in await accounts.parts(connection, asking, everything=verdict.everything):
            lines += heading
            lines += await _working_context(connection, zone, account)
            lines += await _summaries(connection, account)
            lines += await _timers(connection, zone, account)
            lines += await _passages(connection, zone, account)
        lines += await _asked(connection, zone)
        lines += await _acts_of_others(connection, zone)
        lines += [await _totals(connection, zone)]
        lines += await quoted.line(asking) if verdict.workspace is None else []
        paused = bool(await value(connection, "SELECT paused FROM agents"))
    if verdict.workspace is not None:
        lines.insert(0, "What came from this workspace.")
    elif not verdict.everything:
        lines.insert(0, "What may be used in this place; in a direct message you see everything.")
    if paused:
        lines.insert(0, "Paused: nothing new is remembered.")
    if asking.about_another:
        return page_of(lines, page, f"/admin memory view {asking.person.author_id}")
    return page_of(lines, page, "/memory view", _ways(paused) if page == 1 else ())


def _ways(paused: bool) -> tuple[Button, ...]:
    return (
        Button("Correct", "/memory correct", ask="number and new text"),
        Button("Forget", "/memory forget", "danger", ask="number"),
        Button("Resume", "/memory resume", "good") if paused else Button("Pause", "/memory pause"),
    )


async def _one(asking: Asking, wanted: Thing, zone: tzinfo) -> Answer:
    verdict = asking.allowed("view")
    async with asking.open(verdict) as connection:
        row = await row_of(connection, wanted)
        if row is None:
            raise not_there(wanted)
        changes = (await undo.history(connection, target=wanted.target, target_id=wanted.number))[:CHANGES]
        lines = [
            f"{wanted}: {row['content'][:WHOLE]}"
            + (f" … ({len(row['content'])} characters)" if len(row["content"]) > WHOLE else "")
        ]
        lines += [f"  from {place_label(row['kind'], row['name'])}, {when(row['at'], zone)}"]
        if wanted.letter in "wa":
            lines += await _made_of(connection, wanted)
        lines += [f"  {WITHHELD}"] if row["withheld"] else []
        lines += ["  shared: it may be used in all places of this platform's workspace where we talk"] if row["shareable"] else []
        lines += [f"  change {change.id}, {when(change.at, zone)}: {change.actor}, {change.action}" for change in changes]
    if asking.about_another:
        return Answer("\n".join(lines))
    shared = (
        Button("Do not share", f"/memory unshare {wanted}") if row["shareable"] else Button("Share", f"/memory share {wanted}")
    )
    correct = [Button("Correct", f"/memory correct {wanted}", ask="new text")] if wanted.letter in "wa" else []
    return Answer("\n".join(lines), (*correct, shared, Button("Forget", f"/memory forget {wanted}", "danger")))


def not_there(wanted: Thing) -> CommandRefused:
    """The number names nothing that may be seen here."""
    return CommandRefused(f"There is no {wanted} here. /memory view and /memory search show the numbers.")


_CONTENT = {"message": "content", "working_context": "content", "passage": "content", "timer": "purpose"}
_WITHHELD = {"message": "x.withheld", "working_context": "x.withheld"}
_AT = {"working_context": "updated_at"}


async def row_of(connection: Connection, wanted: Thing) -> dict[str, Any] | None:
    """A thing that may be seen here: content, place, when, whether it is shared, the turn it was made in."""
    cursor = await connection.execute(
        f"""SELECT x.{_CONTENT[wanted.target]} AS content, x.{_AT.get(wanted.target, "created_at")} AS at, x.shareable, x.turn_id, x.place_id,
              {_WITHHELD.get(wanted.target, "false")} AS withheld,
              p.kind, p.name FROM {undo.TABLES[wanted.target]} x JOIN places p ON p.id = x.place_id WHERE x.id = %s""",  # noqa: S608 - names of ours
        (wanted.number,),
    )
    return await cursor.fetchone()


async def _made_of(connection: Connection, wanted: Thing) -> list[str]:
    column = "entry_id" if wanted.letter == "w" else "passage_id"
    rows = await _rows(
        connection,
        f"""SELECT m.id, m.content, m.role FROM sources s JOIN messages m ON m.id = s.message_id
            WHERE s.{column} = %s AND s.role = 'trigger' ORDER BY m.id DESC LIMIT 3""",  # noqa: S608 - one of two names
        (wanted.number,),
    )
    return [
        f"  made of m{row['id']}, {'I' if row['role'] == 'assistant' else 'you'}: {brief(row['content'], 120)}" for row in rows
    ]


async def search(asking: Asking) -> Answer:
    """Recall and archival storage, a page of each. `page 2` at the end of the words asks for the second."""
    verdict = asking.allowed("search")
    words, page = paged(asking.argument)
    if not words:
        return Answer("Say what to look for: /memory search WORDS (and `page 2` at the end for more).")
    if asking.agent is None:
        return Answer(NOBODY)
    zone = await asking.zone()
    vector = await asking.parts.vector(words)
    query = Query(words, page=page, page_size=PAGE)
    async with asking.open(verdict) as connection:
        stored = await archival_storage.search(connection, query, vector=vector)
        said = await search_messages(connection, query, vector=vector)
        lines = []
        for heading, account in await accounts.parts(connection, asking, everything=verdict.everything):
            found = [
                *_found("Archival storage", await accounts.only(connection, "passages", stored, account), "a", zone),
                *_found("Messages", await accounts.only(connection, "messages", said, account), "m", zone),
            ]
            lines += [*heading, *found] if found else []
    if not lines:
        return Answer("Nothing found." if page == 1 else f"Nothing on page {page}.")
    return Answer("\n".join(lines), turning(page, max(stored.pages, said.pages), f"/memory search {words}"))


def _found(name: str, page: Page, letter: str, zone: tzinfo) -> list[str]:
    lines = [f"{name}. {page.headline}"] if page.hits else []
    for hit in page.hits:
        speaker = "" if letter == "a" else "I: " if hit.role == "assistant" else f"{hit.author or 'you'}: "
        lines.append(f"  {letter}{hit.id}  {when(hit.at, zone)}  {speaker}{brief(hit.content, 130)}")
    return lines


async def changes(asking: Asking) -> Answer:
    """What was changed in memory, by whom and when, newest first, with the numbers that /memory undo takes."""
    verdict = asking.allowed("view")
    if asking.agent is None:
        return Answer(NOBODY)
    zone, (_, page) = await asking.zone(), paged(asking.argument)
    async with asking.open(verdict) as connection:
        rows = await undo.history(connection)
        lines = []
        for heading, account in await accounts.parts(connection, asking, everything=verdict.everything):
            here = await accounts.of(connection, "memory_log", [row.id for row in rows], account)
            shown = [_changed(row, zone) for row in rows if row.id in here]
            lines += [*heading, *shown] if shown else []
    if not lines:
        return Answer("Nothing was changed yet.")
    return page_of(["Changes, the newest first; /memory undo NUMBER takes one back", *lines], page, "/memory changes")


def _changed(row: undo.Change, zone: tzinfo) -> str:
    return (
        f"  {row.id}  {when(row.at, zone)}  {'I' if row.actor == 'agent' else 'you' if row.actor == 'person' else row.actor}: {row.action}"
        f" {LETTERS[row.target]}{row.target_id}{' (undone)' if row.undone else ''}  {brief(row.after or row.before or '', 100)}"
    )


def _origin(row: dict[str, Any], zone: tzinfo) -> str:
    place = place_label(row["place_kind"], row["place_name"])
    sources: Sequence[int] = row["sources"] or ()
    parts = [when(row["at"], zone), place, *([", ".join(f"m{source}" for source in sources)] if sources else [])]
    return f"({'; '.join(parts)})"


async def _rows(
    connection: Connection, statement: str, parameters: tuple[Any, ...] | Mapping[str, Any] = ()
) -> list[dict[str, Any]]:
    return await (await connection.execute(statement, parameters)).fetchall()


_SOURCES = """(SELECT array_agg(s.message_id ORDER BY s.message_id DESC) FROM
  (SELECT message_id FROM sources WHERE {} = x.id AND role = 'trigger' ORDER BY message_id DESC LIMIT 3) s) AS sources"""


async def _working_context(connection: Connection, zone: tzinfo, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.section, x.content, x.withheld, x.updated_at AS at, p.kind AS place_kind, p.name AS place_name,
              {_SOURCES.format("entry_id")}
            FROM working_context x JOIN places p ON p.id = x.place_id WHERE {IN_ACCOUNT}
            ORDER BY array_position(%(sections)s::text[], x.section), x.id""",  # noqa: S608
        {**account.named(), "sections": list(SECTIONS)},
    )
    lines = ["Working context (always in view)"]
    section = ""
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            lines.append(f"  {section}")
        lines.append(f"    w{row['id']}  {brief(row['content'])}  {_origin(row, zone)}")
        lines += [f"      {WITHHELD}"] if row["withheld"] else []
    return lines if rows else ["Working context: nothing yet."]


async def _passages(connection: Connection, zone: tzinfo, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.content, x.tags, x.created_at AS at, p.kind AS place_kind, p.name AS place_name,
              {_SOURCES.format("passage_id")}
            FROM passages x JOIN places p ON p.id = x.place_id WHERE {IN_ACCOUNT} ORDER BY x.id DESC LIMIT %(shown)s""",  # noqa: S608
        {**account.named(), "shown": SHOWN},
    )
    if not rows:
        return []
    lines = [f"Archival storage (the newest {len(rows)}; /memory search finds the rest)"]
    for row in rows:
        tags = f" [{', '.join(row['tags'])}]" if row["tags"] else ""
        lines.append(f"    a{row['id']}  {brief(row['content'])}{tags}  {_origin(row, zone)}")
    return lines


async def _summaries(connection: Connection, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT c.summary, p.kind, p.name FROM conversations c JOIN places p ON p.id = c.place_id
            WHERE c.summary <> '' AND {IN_ACCOUNT} ORDER BY c.id""",  # noqa: S608
        account.named(),
    )
    return [f"Summary ({place_label(row['kind'], row['name'])}): {brief(row['summary'], WHOLE)}" for row in rows]


async def _timers(connection: Connection, zone: tzinfo, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.kind, x.purpose, x.due_at, x.every FROM timers x JOIN places p ON p.id = x.place_id
            WHERE x.due_at IS NOT NULL AND {IN_ACCOUNT} ORDER BY x.due_at""",  # noqa: S608 - names of ours
        account.named(),
    )
    if not rows:
        return []
    lines = ["Timers"]
    for row in rows:
        again = f", every {row['every']}" if row["every"] else ""
        whose = {"follow_up": " (my own idea)", "schedule": " (set by the operator)"}.get(row["kind"], "")
        lines.append(f"    t{row['id']}  {when(row['due_at'], zone)}{again}  {brief(row['purpose'])}{whose}")
    return lines


async def _asked(connection: Connection, zone: tzinfo) -> list[str]:
    rows = await _rows(connection, "SELECT content, kind, until FROM memory_requests ORDER BY id")
    return (["Not kept yet: waiting for your yes or no"] if rows else []) + [
        f"    {brief(row['content'])}  ({row['kind']}; until {when(row['until'], zone)})" for row in rows
    ]


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
    messages, passages = counted(row["messages"], "message"), counted(row["passages"], "note")
    return f"Everything we said: {messages}{since}. Kept apart: {passages}{documents}."


async def note_act(connection: Connection, action: str, asking_role: str, agent: int, at: datetime, workspace: str = "") -> None:
    """Write an operator's or admin's act where the person sees it, under a place of the admin's workspace if there is one; nothing
    when the agent has no place yet."""
    place = await value(
        connection,
        """SELECT c.place_id FROM conversations c JOIN places p ON p.id = c.place_id
           ORDER BY (p.workspace = %s AND p.kind <> 'direct') DESC, c.id LIMIT 1""",
        (workspace,),
    )
    if place is not None:
        await connection.execute(
            "INSERT INTO memory_log (agent_id, place_id, at, actor, action, target) VALUES (%s, %s, %s, %s, %s, 'everything')",
            (agent, place, at, asking_role, action),
        )
