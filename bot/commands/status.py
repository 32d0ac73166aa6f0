"""/status: how the bot is, in a few lines, without anything of other people."""

from bot.commands.context import Asking
from bot.health import Service
from bot.keeping.notice import where


async def whoami(asking: Asking) -> str:
    """Who the bot takes this person for, and what this place is to it."""
    asking.allowed("help")
    say = asking.say
    lines = [say("whoami.you", account=asking.person.author_id, name=asking.person.name), say(f"whoami.here_{asking.kind}")]
    lines.append(say("whoami.stranger" if asking.agent is None else "whoami.known"))
    if asking.agent is not None and asking.own_direct:
        async with asking.parts.db.agent(asking.agent) as connection:
            cursor = await connection.execute("SELECT platform, realm, user_id FROM identities ORDER BY created_at")
            accounts = [f"{row['platform']}:{row['realm']}:{row['user_id']}" for row in await cursor.fetchall()]
        lines += [say("whoami.linked", accounts=", ".join(accounts))] if len(accounts) > 1 else []
    lines.append(say("whoami.answered_by", host=where(asking.parts.hosts, asking.locale)))
    lines.append(say("whoami.readers", readers=_readers(asking)))
    return "\n".join([*lines, *([say("whoami.operator")] if asking.actor.operator and asking.actor.oversees else [])])


def _readers(asking: Asking) -> str:
    """Who besides the person can read what is kept of what is said here."""
    parts, workspace = asking.parts, asking.where.workspace
    readers = [asking.say("whoami.who_runs_me")]
    if workspace and parts.admins.get(workspace) and (not asking.own_direct or parts.admins_see_direct):
        readers.append(asking.say("whoami.admins"))
    if asking.kind != "direct":
        readers.append(asking.say("whoami.people_here"))
    return ", ".join(readers)


async def status(asking: Asking) -> str:
    """The model, the services, what waits for this person, and (to operators) the counters."""
    verdict = asking.allowed("status")
    parts, now = asking.parts, asking.parts.now()

    async def ask_database() -> None:
        async with parts.db.bare() as connection:
            await connection.execute("SELECT 1")

    database = await parts.health.check("database", ask_database, now)
    redis = await parts.health.check("redis", parts.cache.ping, now)
    lines = _about(asking)
    lines.append(asking.say("status.database", how=_word(asking, database)))
    lines.append(asking.say("status.redis" if redis.well else "status.without_redis", how=_word(asking, redis)))
    model = parts.health.services.get("model")
    if model:
        lines.append(asking.say("status.endpoint", how=_word(asking, model), at=f"{model.since:%H:%M}"))
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
            asking.say(
                "status.you",
                messages=asking.counted("message", row["messages"]),
                waiting=row["waiting"],
                unsent=asking.counted("answer", row["unsent"]),
            )
        )
        if row["dead"]:
            lines.append(asking.say("status.dead", n=row["dead"]))
        if row["paused"]:
            lines.append(asking.say("status.paused"))
    if asking.actor.operator:
        lines += [f"{reason}: {count}" for reason, count in parts.health.counts.items()]
    return "\n".join(lines)


def _about(asking: Asking) -> list[str]:
    parts = asking.parts
    model = "status.rehearsal" if parts.rehearsal else "status.model"
    embedding = asking.say("status.embedding", name=parts.embedding) if parts.embedding else asking.say("status.no_embedding")
    return [asking.say(model, name=parts.model), embedding] if parts.model else []


def _word(asking: Asking, service: Service) -> str:
    return asking.say("status.well") if service.well else asking.say("status.away", error=service.error)
