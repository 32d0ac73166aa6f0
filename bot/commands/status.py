"""/status: how the bot is, in a few lines, without anything of other people."""

from bot.commands.context import Asking, counted
from bot.health import Service
from bot.keeping.notice import where


async def whoami(asking: Asking) -> str:
    """Who the bot takes this person for, and what this place is to it."""
    asking.allowed("help")
    kinds = {
        "direct": "a direct message: all that is yours may be used here",
        "private": "a private place: only what was said here, or in public places of this server, may be used",
        "public": "a public place: only what was said in public places of this server may be used",
    }
    lines = [f"you: {asking.person.author_id} ({asking.person.name})", f"here: {kinds[asking.kind]}"]
    lines.append("memory: you have an agent of your own" if asking.agent is not None else "memory: nothing is kept of you yet")
    if asking.agent is not None and asking.own_direct:
        async with asking.parts.db.agent(asking.agent) as connection:
            cursor = await connection.execute("SELECT platform, realm, user_id FROM identities ORDER BY created_at")
            accounts = [f"{row['platform']}:{row['realm']}:{row['user_id']}" for row in await cursor.fetchall()]
        lines += [f"linked accounts: {', '.join(accounts)}"] if len(accounts) > 1 else []
    lines.append(f"your words: answered by {where(asking.parts.hosts, asking.person.locale)}; kept where I run")
    lines.append(f"who can read them: {_readers(asking)}")
    return "\n".join([*lines, *(["operator: yes"] if asking.actor.operator and asking.actor.oversees else [])])


def _readers(asking: Asking) -> str:
    """Who besides the person can read what is kept of what is said here."""
    parts, workspace = asking.parts, asking.where.workspace
    readers = ["whoever runs me"]
    if workspace and parts.admins.get(workspace) and (not asking.own_direct or parts.admins_see_direct):
        readers.append("this workspace's admins")
    if asking.kind != "direct":
        readers.append("the people here, what I answer")
    return f"{', '.join(readers)} (/admin who)"


async def status(asking: Asking) -> str:
    """The model, the services, what waits for this person, and (to operators) the counters."""
    verdict = asking.allowed("status")
    parts, now = asking.parts, asking.parts.now()

    async def ask_database() -> None:
        async with parts.db.bare() as connection:
            await connection.execute("SELECT 1")

    database = await parts.health.check("database", ask_database, now)
    redis = await parts.health.check("redis", parts.cache.ping, now)
    lines = [f"{name}: {text}" for name, text in (parts.about or {}).items()]
    lines += [f"database: {_word(database)}", f"redis: {_word(redis)}" + ("" if redis.well else "; going on without it, slower")]
    model = parts.health.services.get("model")
    if model:
        lines.append(f"model endpoint: {_word(model)} (last used {model.since:%H:%M} UTC)")
    if asking.agent is not None:
        async with parts.db.agent(asking.agent, asking.place, everything=verdict.everything) as connection:
            row = await (
                await connection.execute(
                    """SELECT (SELECT count(*) FROM events WHERE status = 0) AS waiting,
                         (SELECT count(*) FROM events WHERE status = 2) AS dead,
                         (SELECT count(*) FROM outbox WHERE state IN ('waiting', 'sending')) AS unsent,
                         (SELECT count(*) FROM messages WHERE searchable) AS messages, (SELECT paused FROM agents) AS paused"""
                )
            ).fetchone()
        assert row is not None
        lines.append(
            f"you: {counted(row['messages'], 'message')} remembered, {row['waiting']} waiting for an answer, "
            f"{counted(row['unsent'], 'answer')} unsent"
        )
        if row["dead"]:
            lines.append(f"dead letters: {row['dead']} of your messages could not be answered; the operator can replay them")
        if row["paused"]:
            lines.append("paused: yes")
    if asking.actor.operator:
        lines += [f"{reason}: {count}" for reason, count in parts.health.counts.items()]
    return "\n".join(lines)


def _word(service: Service) -> str:
    return "well" if service.well else f"away ({service.error})"
