"""/memory view and /memory search: what is remembered, with where and when it came from."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from adapters.base import Answer, Button
from bot.commands import accounts, quoted
from bot.commands.accounts import IN_ACCOUNT, Account
from bot.commands.context import NOBODY, Asking, CommandRefused
from bot.commands.paging import page_of, paged, turning
from bot.speaking.saying import repeats
from memory import archival_storage, undo
from memory.db import Connection, value
from memory.search import Page, Query, search_messages
from memory.things import LETTERS, Thing, brief, thing
from memory.working_context import SECTIONS

SHOWN = 10
"""Passages in a view; the rest is found by searching."""
PAGE = 5
WHOLE = 1200
"""Characters shown of one thing that is looked at alone, and of a summary."""
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
            raise CommandRefused("view.usage")
        return await _one(asking, wanted, zone)
    async with asking.open(verdict) as connection:
        lines = []
        for heading, account in await accounts.parts(connection, asking, everything=verdict.everything):
            lines += heading
            lines += await _working_context(asking, connection, zone, account)
            lines += await _summaries(asking, connection, account)
            lines += await _timers(asking, connection, zone, account)
            lines += await _passages(asking, connection, zone, account)
        lines += await _asked(asking, connection, zone)
        lines += await _acts_of_others(asking, connection, zone)
        lines += [await _totals(asking, connection, zone)]
        lines += await quoted.line(asking) if verdict.workspace is None else []
        paused = bool(await value(connection, "SELECT paused FROM agents"))
    if verdict.workspace is not None:
        lines.insert(0, asking.say("view.workspace"))
    elif not verdict.everything:
        lines.insert(0, asking.say("view.here"))
    if paused:
        lines.insert(0, asking.say("view.paused"))
    if asking.about_another:
        return page_of(asking, lines, page, f"/admin memory view {asking.person.author_id}")
    return page_of(asking, lines, page, "/memory view", _ways(asking, paused) if page == 1 else ())


def _ways(asking: Asking, paused: bool) -> tuple[Button, ...]:
    return (
        Button(asking.say("button.correct"), "/memory correct", ask=asking.say("ask.number_and_text")),
        Button(asking.say("button.forget"), "/memory forget", "danger", ask=asking.say("ask.number")),
        asking.pause_or_resume(paused=paused),
    )


async def _one(asking: Asking, wanted: Thing, zone: tzinfo) -> Answer:
    verdict = asking.allowed("view")
    async with asking.open(verdict) as connection:
        row = await row_of(connection, wanted)
        if row is None:
            raise not_there(wanted)
        changes = (await undo.history(connection, target=wanted.target, target_id=wanted.number))[:CHANGES]
        content = row["content"]
        more = f" … (+{len(content) - WHOLE})" if len(content) > WHOLE else ""
        lines = [f"{wanted}: {content[:WHOLE]}{more}"]
        label, at = asking.label(row["kind"], row["name"]), asking.when(row["at"], zone)
        lines += ["  " + asking.say("view.from", place=label, at=at)]
        if wanted.letter in "wa":
            lines += await _made_of(asking, connection, wanted)
        lines += [f"  {asking.say('view.withheld')}"] if row["withheld"] else []
        lines += [f"  {asking.say('view.shared')}"] if row["shareable"] else []
        lines += [f"  {_change(asking, change, zone)}" for change in changes]
    if asking.about_another:
        return Answer("\n".join(lines))
    shared = (
        Button(asking.say("button.unshare"), f"/memory unshare {wanted}")
        if row["shareable"]
        else Button(asking.say("button.share"), f"/memory share {wanted}")
    )
    correct = (
        [Button(asking.say("button.correct"), f"/memory correct {wanted}", ask=asking.say("ask.text"))]
        if wanted.letter in "wa"
        else []
    )
    return Answer("\n".join(lines), (*correct, shared, Button(asking.say("button.forget"), f"/memory forget {wanted}", "danger")))


def not_there(wanted: Thing) -> CommandRefused:
    """The number names nothing that may be seen here."""
    return CommandRefused("view.not_there", thing=wanted)


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


async def _made_of(asking: Asking, connection: Connection, wanted: Thing) -> list[str]:
    column = "entry_id" if wanted.letter == "w" else "passage_id"
    rows = await _rows(
        connection,
        f"""SELECT m.id, m.content, m.role FROM sources s JOIN messages m ON m.id = s.message_id
            WHERE s.{column} = %s AND s.role = 'trigger' ORDER BY m.id DESC LIMIT 3""",  # noqa: S608 - one of two names
        (wanted.number,),
    )
    return [
        "  "
        + asking.say(
            "view.made_of_assistant" if row["role"] == "assistant" else "view.made_of_user",
            number=row["id"],
            text=brief(row["content"], 120),
        )
        for row in rows
    ]


async def search(asking: Asking) -> Answer:
    """Recall and archival storage, a page of each. `page 2` at the end of the words asks for the second."""
    verdict = asking.allowed("search")
    words, page = paged(asking.argument)
    if not words:
        return Answer(asking.say("search.usage"))
    if asking.agent is None:
        return Answer(asking.say(NOBODY))
    zone = await asking.zone()
    vector = await asking.parts.vector(words)
    query = Query(words, page=page, page_size=PAGE, asked_at=asking.parts.now().astimezone(zone))
    async with asking.open(verdict) as connection:
        stored = await archival_storage.search(connection, query, vector=vector)
        said = await search_messages(connection, query, vector=vector)
        lines = []
        for heading, account in await accounts.parts(connection, asking, everything=verdict.everything):
            found = [
                *_found(asking, "search.passages", await accounts.only(connection, "passages", stored, account), "a", zone),
                *_found(asking, "search.messages", await accounts.only(connection, "messages", said, account), "m", zone),
            ]
            lines += [*heading, *found] if found else []
    if not lines:
        return Answer(asking.say("search.nothing") if page == 1 else asking.say("search.no_page", number=page))
    return Answer("\n".join(lines), turning(asking, page, max(stored.pages, said.pages), f"/memory search {words}"))


def _found(asking: Asking, name: str, page: Page, letter: str, zone: tzinfo) -> list[str]:
    shown = {"shown": len(page.hits), "all": page.total, "page": page.page, "pages": page.pages}
    lines = [asking.say(name, **shown)] if page.hits else []
    for hit in page.hits:
        own = asking.say("who.agent" if hit.role == "assistant" else "who.person")
        speaker = "" if letter == "a" else f"{(hit.role != 'assistant' and hit.author) or own}: "
        lines.append(f"  {letter}{hit.id}  {asking.when(hit.at, zone)}  {speaker}{brief(hit.content, 130)}")
    return lines


async def changes(asking: Asking) -> Answer:
    """What was changed in memory, by whom and when, newest first, with the numbers that /memory undo takes."""
    verdict = asking.allowed("view")
    if asking.agent is None:
        return Answer(asking.say(NOBODY))
    zone, (_, page) = await asking.zone(), paged(asking.argument)
    async with asking.open(verdict) as connection:
        rows = await undo.history(connection)
        lines = []
        for heading, account in await accounts.parts(connection, asking, everything=verdict.everything):
            here = await accounts.of(connection, "memory_log", [row.id for row in rows], account)
            shown = [_changed(asking, row, zone) for row in rows if row.id in here]
            lines += [*heading, *shown] if shown else []
    if not lines:
        return Answer(asking.say("changes.none"))
    return page_of(asking, [asking.say("changes.heading"), *lines], page, "/memory changes")


def _changed(asking: Asking, row: undo.Change, zone: tzinfo) -> str:
    undone = f" ({asking.say('changes.undone')})" if row.undone else ""
    return (
        f"  {row.id}  {asking.when(row.at, zone)}  {asking.say(f'who.{row.actor}')}: {row.action}"
        f" {LETTERS[row.target]}{row.target_id}{undone}  {brief(row.after or row.before or '', 100)}"
    )


def _change(asking: Asking, change: undo.Change, zone: tzinfo) -> str:
    who, at = asking.say(f"who.{change.actor}"), asking.when(change.at, zone)
    return asking.say("changes.one", number=change.id, at=at, who=who, action=change.action)


def _origin(asking: Asking, row: dict[str, Any], zone: tzinfo) -> str:
    place = asking.label(row["place_kind"], row["place_name"])
    sources: Sequence[int] = row["sources"] or ()
    parts = [asking.when(row["at"], zone), place, *([", ".join(f"m{source}" for source in sources)] if sources else [])]
    return f"({'; '.join(parts)})"


async def _rows(
    connection: Connection, statement: str, parameters: tuple[Any, ...] | Mapping[str, Any] = ()
) -> list[dict[str, Any]]:
    return await (await connection.execute(statement, parameters)).fetchall()


_SOURCES = """(SELECT array_agg(s.message_id ORDER BY s.message_id DESC) FROM
  (SELECT message_id FROM sources WHERE {} = x.id AND role = 'trigger' ORDER BY message_id DESC LIMIT 3) s) AS sources"""


async def _working_context(asking: Asking, connection: Connection, zone: tzinfo, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.section, x.content, x.withheld, x.updated_at AS at, p.kind AS place_kind, p.name AS place_name,
              {_SOURCES.format("entry_id")}
            FROM working_context x JOIN places p ON p.id = x.place_id WHERE {IN_ACCOUNT}
            ORDER BY array_position(%(sections)s::text[], x.section), x.id""",  # noqa: S608
        {**account.named(), "sections": list(SECTIONS)},
    )
    lines = [asking.say("view.entries")]
    section = ""
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            lines.append(f"  {asking.say(f'section.{section}')}")
        lines.append(f"    w{row['id']}  {brief(row['content'])}  {_origin(asking, row, zone)}")
        lines += [f"      {asking.say('view.withheld')}"] if row["withheld"] else []
    return lines if rows else [asking.say("view.no_entries")]


async def _passages(asking: Asking, connection: Connection, zone: tzinfo, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.content, x.tags, x.created_at AS at, p.kind AS place_kind, p.name AS place_name,
              {_SOURCES.format("passage_id")}
            FROM passages x JOIN places p ON p.id = x.place_id WHERE x.document_id IS NULL AND {IN_ACCOUNT} ORDER BY x.id DESC LIMIT %(shown)s""",  # noqa: S608
        {**account.named(), "shown": SHOWN},
    )
    if not rows:
        return []
    lines = [asking.say("view.passages", number=len(rows))]
    for row in rows:
        tags = f" [{', '.join(row['tags'])}]" if row["tags"] else ""
        lines.append(f"    a{row['id']}  {brief(row['content'])}{tags}  {_origin(asking, row, zone)}")
    return lines


async def _summaries(asking: Asking, connection: Connection, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT c.summary, p.kind, p.name FROM conversations c JOIN places p ON p.id = c.place_id
            WHERE c.summary <> '' AND {IN_ACCOUNT} ORDER BY c.id""",  # noqa: S608
        account.named(),
    )
    return [
        asking.say("view.summary", place=asking.label(row["kind"], row["name"]), text=brief(row["summary"], WHOLE))
        for row in rows
    ]


async def _timers(asking: Asking, connection: Connection, zone: tzinfo, account: Account) -> list[str]:
    rows = await _rows(
        connection,
        f"""SELECT x.id, x.kind, x.purpose, x.due_at, x.wall_time, x.every FROM timers x JOIN places p ON p.id = x.place_id
            WHERE x.due_at IS NOT NULL AND {IN_ACCOUNT} ORDER BY x.due_at""",  # noqa: S608 - names of ours
        account.named(),
    )
    if not rows:
        return []
    lines = [asking.say("view.timers")]
    for row in rows:
        what = asking.say("view.opener") if row["kind"] == "opener" else brief(row["purpose"])
        whose = f" ({asking.say('view.' + row['kind'])})" if row["kind"] in ("follow_up", "schedule") else ""
        again = f", {repeats(row['every'], row['wall_time'], asking.locale)}" if row["every"] else ""
        lines.append(f"    t{row['id']}  {asking.when(row['due_at'], zone)}{again}  {what}{whose}")
    return lines


async def _asked(asking: Asking, connection: Connection, zone: tzinfo) -> list[str]:
    rows = await _rows(connection, "SELECT content, kind, until FROM memory_requests ORDER BY id")
    return ([asking.say("view.asked")] if rows else []) + [
        f"    {brief(row['content'])}  ({asking.say('view.until', at=asking.when(row['until'], zone))})" for row in rows
    ]


async def _acts_of_others(asking: Asking, connection: Connection, zone: tzinfo) -> list[str]:
    rows = await _rows(
        connection,
        "SELECT at, actor, action FROM memory_log WHERE actor IN ('operator', 'admin') ORDER BY id DESC LIMIT %s",
        (SHOWN,),
    )
    return ([asking.say("view.acts")] if rows else []) + [
        f"    {asking.when(row['at'], zone)}  {asking.say('who.' + row['actor'])}: {row['action']}" for row in rows
    ]


async def _totals(asking: Asking, connection: Connection, zone: tzinfo) -> str:
    row = (
        await _rows(
            connection,
            """SELECT (SELECT count(*) FROM messages WHERE searchable) AS messages,
                 (SELECT min(created_at) FROM messages) AS since,
                 (SELECT count(*) FROM passages WHERE document_id IS NULL) AS passages, (SELECT count(*) FROM documents) AS documents""",
        )
    )[0]
    kept = [asking.counted("note", row["passages"]), *asking.counts({"document": row["documents"]})]
    said = {"messages": asking.counted("message", row["messages"]), "kept": ", ".join(kept)}
    return (
        asking.say("view.totals_since", since=asking.when(row["since"], zone), **said)
        if row["since"]
        else asking.say("view.totals", **said)
    )


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
