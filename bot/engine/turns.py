"""Turns: taking an agent's waiting events, and committing what a turn does, step by step, under its epoch.

A claim raises the agent's epoch. Every step is one transaction whose last act is the fence: it locks the agent's row and refuses
when the epoch has moved on (another worker took over), when the turn does not stand at this step (the database lost what it had said was
committed), or when memory or place policy is not what the prompt was built from.
Lock order everywhere: the agent's row before its turn's row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb

from adapters.base import Button
from adapters.catalogue import in_every_language, say
from adapters.text import split
from bot.engine.events import Claim, ContextChanged, Event, Fence, StaleTurn, TurnCancelled, Wait, as_said
from bot.engine.settings import EngineSettings
from bot.engine.signals import Senders
from memory import spending
from memory.db import Connection, Database, value
from memory.sanitise import clean
from memory.spending import Usage

State = Literal["done", "failed", "cancelled"]
LIMIT = 2000
"""Characters of one outgoing message where its platform's limit was not given: Discord's, the smallest."""
MENTION = 40
"""Characters that the mark needs which notifies a person."""
LOCK_TIMEOUT = "5s"
_APOLOGIES = Jsonb(in_every_language("turn.apology"))
_EVENTS = """SELECT id, seq, kind, origin, payload, created_at, visibility FROM events
             WHERE turn_id = %s AND status = 0 ORDER BY seq"""
# A message that nobody knows to have been begun is looked up first, like any doubtful one.
_TAKE_OVER = """UPDATE outbox SET body = %s, step = %s, part = %s, not_before = CASE WHEN platform_id IS NULL THEN %s::timestamptz END,
                  state = CASE WHEN platform_id IS NULL THEN 'sending' ELSE 'waiting' END WHERE id = %s AND state = 'streaming'"""
# Rows that the engine writes into the outbox itself stand under steps that no turn reaches.
_APOLOGY, _NOTICE = -2, -1
ASIDE = -2
"""What is said beside the answer stands below this step."""


async def claim(db: Database, agent: int, now: datetime, settings: EngineSettings) -> Claim | Wait | None:
    """Take the agent's turn: the unfinished one, or the longest run of waiting events of one place and one origin.

    None: nothing waits, and the wake flag is down. One transaction, so that a crash in it counts for nothing.
    """
    limits = (settings.coalesce, settings.max_attempts, round(settings.burst_cap * 1000), _APOLOGIES)
    async with db.opened("SELECT * FROM claim_turn(%s, %s, %s, %s, %s, %s)", (agent, now, *limits)) as (connection, cursor):
        taken = await cursor.fetchone()
        if taken is None:
            return None
        if taken["wait_until"] is not None:
            return Wait(taken["wait_until"])
        async with connection.pipeline():
            await connection.execute("SELECT enter(%s, %s)", (agent, taken["place_id"]))
            turns = await connection.execute(
                "SELECT t.*, v.version, v.policy_version, p.platform, p.external_id FROM turns t JOIN places p ON p.id = t.place_id,"
                " versions(t.agent_id) v WHERE t.id = %s",
                (taken["turn_id"],),
            )
            waiting = await connection.execute(_EVENTS, (taken["turn_id"],))
        turn = await turns.fetchone()
        assert turn is not None
        events = as_said([Event(**row) for row in await waiting.fetchall()])
    return Claim(
        agent=agent,
        epoch=taken["epoch"],
        turn=turn["id"],
        step=turn["step"],
        conversation=turn["conversation_id"],
        place=turn["place_id"],
        platform=turn["platform"],
        channel=turn["external_id"],
        origin=turn["origin"],
        events=events,
        started_at=turn["started_at"],
        passes=turn["passes"],
        memory_calls=turn["memory_calls"],
        memory_writes=turn["memory_writes"],
        tokens=turn["tokens"],
        replied=turn["replied"],
        nudged=turn["nudged"],
        resumed=taken["resumed"],
        cancel_requested=turn["cancel_requested"],
        fence=Fence(taken["epoch"], turn["version"], turn["policy_version"], turn["step"]),
    )


@dataclass(slots=True)
class Step:
    """One step of a turn while it is open. The counters are what this step adds; `finish` ends the turn with it."""

    connection: Connection
    claim: Claim
    now: datetime
    finish: State | None = None
    limits: Mapping[str, int] | None = None
    passes: int = 0
    memory_calls: int = 0
    memory_writes: int = 0
    tokens: int = 0
    replied: bool = False
    nudged: bool = False
    more: bool | None = None
    parts: int = 0
    held: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    async def reply(
        self,
        text: str,
        reply_to: str | None = None,
        begun: Sequence[int] = (),
        *,
        buttons: Sequence[Button] = (),
        notify: bool = False,
    ) -> int:
        """Put a reply into the outbox, split by the platform's limit, for the place of the turn. Returns its number of messages.

        `begun`: rows of messages that the platform shows the beginnings of; they take the first parts over. `buttons` stand under the last
        part, and `notify`: the first one notifies the person, where others read it too.
        """
        limit = (self.limits or {}).get(self.claim.platform, LIMIT)
        chunks = split(clean(text), limit - MENTION if notify else limit)
        for number, chunk in enumerate(chunks):
            if number < len(begun):
                self.later(_TAKE_OVER, (chunk, self.claim.fence.step, self.parts, self.now, begun[number]))
            else:
                await _enqueue(
                    self,
                    self.claim.fence.step,
                    self.parts,
                    chunk,
                    reply_to if number == 0 else None,
                    buttons=buttons if number == len(chunks) - 1 else (),
                    notify=notify and number == 0,
                )
            self.parts += 1
        self.replied = self.replied or bool(chunks)
        return len(chunks)

    async def say(self, step: int, text: str, buttons: Sequence[Button] = ()) -> None:
        """Put a text of the bot's own into the outbox, at most once per turn and `step`; `buttons` stand under it."""
        chunks = split(text, (self.limits or {}).get(self.claim.platform, LIMIT))
        for number, chunk in enumerate(chunks):
            await _enqueue(self, step, number, chunk, None, buttons=buttons if number == len(chunks) - 1 else ())
            self.parts += 1

    def end(self, events: Sequence[int]) -> None:
        """End events with this step, though the turn may go on: neither a crash nor a replay brings them back."""
        self.later(
            "UPDATE events SET status = 1, done_at = %s, payload = payload - 'text' - 'quotes' - 'purpose' WHERE id = ANY (%s) AND status = 0",
            (self.now, list(events)),
        )

    def later(self, statement: str, parameters: tuple[Any, ...]) -> None:
        """Add a statement whose result nobody needs; it goes out with the last one of the step, in one round trip."""
        self.held.append((statement, parameters))

    async def _fence(self, *, notify: bool) -> None:
        """The last statements of the transaction."""
        claim, fence = self.claim, self.claim.fence
        if notify:
            # Costs a global lock at the commit, so only where no sender of this process can be told.
            self.held.append(("SELECT pg_notify('keepsake_outbox', %s)", (claim.platform,)))
        async with self.connection.pipeline():
            for held in self.held:
                await self.connection.execute(*held)
            cursor = await self.connection.execute(
                "SELECT * FROM end_step(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    claim.agent,
                    claim.turn,
                    fence.epoch,
                    fence.step,
                    fence.version,
                    fence.policy_version,
                    self.finish,
                    self.passes,
                    self.memory_calls,
                    self.memory_writes,
                    self.tokens,
                    self.replied,
                    self.nudged,
                    self.now,
                ),
            )
        row = await cursor.fetchone()
        assert row is not None
        if row["verdict"] != "ok":
            raise {"changed": ContextChanged, "cancelled": TurnCancelled}.get(row["verdict"], StaleTurn)
        self.more = row["more"]


@asynccontextmanager
async def step(
    db: Database,
    claim: Claim,
    *,
    now: datetime,
    finish: State | None = None,
    limits: Mapping[str, int] | None = None,
    outbound: Senders | None = None,
) -> AsyncIterator[Step]:
    """Open a step: its `connection` is a transaction at the claim's place; leaving the block commits it through the fence.

    `limits`: characters of one message by platform. `outbound`: whom in this process to tell of new replies; without it other
    processes are notified. Raises StaleTurn, ContextChanged or TurnCancelled; then nothing of the step is kept.
    """
    begin = ("SELECT begin_step(%s, %s, %s) AS begun", (claim.agent, claim.place, LOCK_TIMEOUT))
    async with db.opened(*begin) as (connection, cursor):
        row = await cursor.fetchone()
        if row is None or not row["begun"]:
            raise StaleTurn
        opened = Step(connection, claim, now, finish, limits)
        yield opened
        await opened._fence(notify=opened.parts > 0 and not (outbound and outbound.serves(claim.platform, claim.channel)))
    claim.fence.version += 1
    claim.fence.step += 1
    claim.fence.more = opened.more
    if outbound and opened.parts:
        outbound.made(claim.platform, claim.channel)


async def refresh(db: Database, claim: Claim) -> Claim:
    """Read versions and events anew after ContextChanged, before the prompt is built anew: an event may have been edited or deleted.

    Raises StaleTurn, also where the database stands before a step of this turn: what that one did has to be done again. Raises
    TurnCancelled where nothing is left to answer.
    """
    fence = claim.fence
    async with db.agent(claim.agent, claim.place) as connection:
        cursor = await connection.execute(
            "SELECT v.*, t.step, t.cancel_requested FROM versions(%s) v, turns t WHERE t.id = %s", (claim.agent, claim.turn)
        )
        row = await cursor.fetchone()
        events = as_said([Event(**each) for each in await (await connection.execute(_EVENTS, (claim.turn,))).fetchall()])
    if row is None or row["epoch"] != fence.epoch or row["step"] != fence.step or row["version"] < fence.version:
        raise StaleTurn
    if row["cancel_requested"] or not events:
        raise TurnCancelled
    fence.version, fence.policy_version = row["version"], row["policy_version"]
    return replace(claim, events=events)


async def drop(
    db: Database,
    claim: Claim,
    events: Sequence[int],
    *,
    now: datetime,
    also: Callable[[Connection], Awaitable[None]] | None = None,
) -> Claim:
    """Leave out events of a turn that are not to be acted on; without any left the turn is over. Returns the claim without them.

    `also`: what else is done in the same transaction.
    """
    left = tuple(event for event in claim.events if event.id not in events)
    async with step(db, claim, now=now, finish=None if left else "done") as last:
        await last.connection.execute("UPDATE events SET status = 3, done_at = %s WHERE id = ANY (%s)", (now, list(events)))
        if also is not None:
            await also(last.connection)
    return replace(claim, events=left)


async def cancelled(db: Database, claim: Claim) -> bool:
    """Whether the person asked to stop this turn; read before each pass."""
    async with db.agent(claim.agent, claim.place) as connection:
        return bool(await value(connection, "SELECT cancel_requested FROM turns WHERE id = %s", (claim.turn,)))


async def release(db: Database, claim: Claim, error: str) -> None:
    """A clean exit without an end: the attempt does not count. `error`: the class of what was in the way."""
    async with db.bare() as connection:
        await connection.execute("SELECT release_turn(%s, %s, %s, %s)", (claim.agent, claim.turn, claim.fence.epoch, error))


async def note_crash(db: Database, claim: Claim, error: str) -> None:
    """Keep the class of the error that broke a turn off; the attempt counts."""
    async with db.agent(claim.agent, claim.place) as connection:
        await connection.execute("UPDATE events SET last_error = %s WHERE turn_id = %s AND status = 0", (error, claim.turn))


async def notice(db: Database, claim: Claim, text: str, *, now: datetime) -> None:
    """Tell the person once per turn that the answer takes longer."""
    async with db.agent(claim.agent, claim.place) as connection:
        line = Step(connection, claim, now)
        await line.say(_NOTICE, text)
        for held in line.held:
            await connection.execute(*held)
        await connection.execute("SELECT pg_notify('keepsake_outbox', '')")


async def give_up(db: Database, claim: Claim, error: str, *, now: datetime, outbound: Senders | None = None) -> bool:
    """End a turn that cannot go on: its events become dead letters, the person is told. Returns whether more waits."""
    async with step(db, claim, now=now, finish="failed", outbound=outbound) as last:
        await last.connection.execute("UPDATE events SET last_error = %s WHERE turn_id = %s AND status = 0", (error, claim.turn))
        if claim.addressed and not claim.replied:
            locale = await value(last.connection, "SELECT locale FROM agents WHERE id = %s", (claim.agent,))
            await last.say(_APOLOGY, say("turn.apology", locale))
    return bool(claim.fence.more)


async def end_cancelled(db: Database, claim: Claim, *, now: datetime) -> bool:
    """End a turn that the person stopped. Returns whether more waits.

    A reminder in it is no work that they could mean; as a dead letter it is said without the model.
    """
    async with step(db, claim, now=now, finish="cancelled") as last:
        await last.connection.execute(
            "UPDATE events SET status = 2, last_error = 'stopped', done_at = %s WHERE turn_id = %s AND status = 0 AND payload->>'timer' = 'reminder'",
            (now, claim.turn),
        )
    return bool(claim.fence.more)


async def _enqueue(
    step: Step, number: int, part: int, body: str, reply_to: str | None, *, buttons: Sequence[Button] = (), notify: bool = False
) -> None:
    step.later(
        """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, reply_to, created_at, buttons, notify)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (turn_id, step, part) DO NOTHING""",
        (
            step.claim.agent,
            step.claim.place,
            step.claim.platform,
            step.claim.channel,
            step.claim.turn,
            number,
            part,
            body,
            reply_to,
            step.now,
            buttons_json(buttons),
            notify,
        ),
    )


async def say_after(
    connection: Connection,
    turn: int | None,
    step: int,
    text: str,
    at: datetime,
    *,
    buttons: Sequence[Button] = (),
    notify: bool = False,
) -> None:
    """Say something about a turn that is over, where it was, after what was said under this step before; in messages that any platform takes."""
    chunks = split(text, LIMIT - MENTION)
    for number, chunk in enumerate(chunks):
        await connection.execute(
            """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at, buttons, notify)
               SELECT t.agent_id, t.place_id, p.platform, p.external_id, t.id, %(step)s,
                 (SELECT count(*) FROM outbox o WHERE o.turn_id = t.id AND o.step = %(step)s), %(text)s, %(at)s, %(buttons)s, %(notify)s
               FROM turns t JOIN places p ON p.id = t.place_id WHERE t.id = %(turn)s""",
            {
                "step": step,
                "text": chunk,
                "at": at,
                "buttons": buttons_json(buttons) if number == len(chunks) - 1 else None,
                "notify": notify and number == 0,
                "turn": turn,
            },
        )
    await connection.execute("SELECT pg_notify('keepsake_outbox', '')")


def buttons_json(buttons: Sequence[Button]) -> Jsonb | None:
    """Buttons as an outbox row keeps them."""
    return Jsonb([asdict(button) for button in buttons]) if buttons else None


def record_usage(step: Step, purpose: str, model: str, used: Usage) -> None:
    """Note what one model call of a turn cost, with the end of the step."""
    statement, parameters = spending.entry(
        agent=step.claim.agent,
        turn=step.claim.turn,
        purpose=purpose,
        model=model,
        prompt=used.prompt_tokens,
        cached=used.cached_tokens,
        completion=used.completion_tokens,
        at=step.now,
    )
    step.later(statement, parameters)
