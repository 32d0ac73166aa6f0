"""The agent: one turn from claimed events to the yield, pass by pass.

Each pass builds the main context, asks the model with no connection held, and commits what came of it as one step: the assistant's
message, the results of its calls, changes of memory, replies for the outbox, usage and counters. A crashed turn goes on from its last
step; a step that finds the memory or the place's policy changed meanwhile is thrown away and its prompt built anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import TypeVar

from adapters import catalogue
from adapters.base import Adapter, Streams
from bot.engine import turns
from bot.engine.events import Claim, ContextChanged, TryAgainLater, TurnCancelled
from bot.engine.signals import Senders
from bot.engine.turns import record_usage
from bot.functions.context import CallContext
from bot.keeping.decision import Judged
from bot.keeping.keeper import Keeper
from bot.keeping.notice import Notice
from bot.model.errors import ContentRefused, ContextOverflow, ModelError
from bot.model.processor import Processor
from bot.model.replies import Reply
from bot.speaking import appointments, reminders
from bot.speaking.initiative import Initiative
from bot.speaking.listening import Listened, Listener
from bot.turn import citing, echoes, endings, executor, filtered
from bot.turn.executor import Planned, Used, after
from bot.turn.inference import Inference
from bot.turn.offering import offering
from bot.turn.pressure import Pressure
from bot.turn.state import AgentSettings, RunningTurn
from bot.turn.streaming import Stream
from memory import agent_state, queue_manager, spending
from memory.agent_state import AgentState
from memory.cache import Cache
from memory.db import Database
from memory.embedding import Meaning, QueryVector
from memory.messages import Draft
from memory.spending import OverBudget, Usage

log = logging.getLogger(__name__)
T = TypeVar("T")

REBUILDS = 5
"""How often one pass is made again because its prompt had become stale."""


class Overtaken(Exception):
    """What a timed turn would say may not go out any more: the person wrote meanwhile, or something else stands against it now."""


class Agent:
    """Runs turns of any agent; holds nothing of one between turns."""

    def __init__(
        self,
        db: Database,
        cache: Cache,
        processor: Processor,
        meaning: Meaning,
        settings: AgentSettings,
        pressure: Pressure,
        *,
        clock: Callable[[], datetime],
        limits: Mapping[str, int],
        outbound: Senders | None = None,
        growing: Mapping[str, Adapter] | None = None,
        initiative: Initiative | None = None,
        listening: Listener | None = None,
        notice: Notice | None = None,
        keeper: Keeper | None = None,
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        """`clock` gives the time (aware), `limits` the most characters of a message by platform; `outbound` is told of new replies.

        `growing`: the adapters on whose platforms a reply may grow while the model writes it, by platform. `initiative` judges timed
        turns; without it nobody is spoken to first but for the reminders they asked for. `listening` is what the bot itself does with
        what people write. `notice` is what they are told at the first contact. `keeper` asks a model about what is to be stored; without
        it words decide. `stored` is told of every step that was committed.
        """
        self._db = db
        self._cache = cache
        self._meaning = meaning
        self._settings = settings
        self._pressure = pressure
        self._clock = clock
        self._inference = Inference(db, processor, pressure, settings, clock)
        self._limits = limits
        self._outbound = outbound
        self._growing = growing or {}
        self._initiative = initiative or Initiative(db)
        self._listening = listening or Listener()
        self._notice = notice or Notice()
        self._keeper = keeper
        self._stored = stored

    # The turn ----------------------------------------------------------------------------------------

    async def turn(self, claim: Claim) -> None:
        """Run a claimed turn to its end.

        Raises StaleTurn, TurnCancelled and TryAgainLater; anything else is a fault that the worker counts against the events.
        """
        admitted = await self._admitted(claim)
        if admitted is None:
            return
        turn = await self._opened(admitted)
        try:
            async with self._inference.patience(turn):
                over = await self._begin(turn)
                while not over and not await self._stable(turn, self._pass):
                    if await turns.cancelled(self._db, claim):
                        raise TurnCancelled
        except Overtaken:
            await self._drop(turn.claim, [event.id for event in turn.claim.events], again=not turn.replied)
            return
        await agent_state.store(self._cache, turn.state, claim.fence.version, claim.fence.policy_version)

    async def _admitted(self, claim: Claim) -> Claim | None:
        """The claim without the timed events that may not be acted on any more; None: nothing is left, and the turn is over."""
        if claim.origin != "timed" or claim.replied:
            return claim
        gone = await self._initiative.refused(claim, self._clock())
        if gone:
            claim = await self._drop(claim, gone)
        return claim if claim.events else None

    async def _drop(self, claim: Claim, gone: Sequence[int], *, again: bool = True) -> Claim:
        """The claim without events that may not be acted on; with `again` what waits for a better time is put off with it."""
        late = gone if again else ()
        for _ in range(REBUILDS):
            now = self._clock()
            try:
                return await turns.drop(
                    self._db, claim, gone, now=now, also=partial(self._initiative.put_off, claim=claim, events=late, now=now)
                )
            except ContextChanged:
                claim = await turns.refresh(self._db, claim)
        raise TryAgainLater("memory kept changing before the turn")

    async def _opened(self, claim: Claim) -> RunningTurn:
        used = Used(claim.passes, claim.memory_calls, claim.memory_writes, claim.tokens)
        started, stream = asyncio.get_running_loop().time(), self._stream(claim)
        if claim.resumed:
            await stream.load()
        return RunningTurn(claim, await self._load(claim), used, claim.replied, claim.nudged, started, stream)

    async def _begin(self, turn: RunningTurn) -> bool:
        """Append what woke the agent. Returns whether the turn is over: reminders that do not come alone the bot says itself."""
        claim = turn.claim
        heard = await self._listening.judge(claim) if claim.step == 0 else Listened()
        if len(claim.events) > 1 and turn.reminds and await self._stable(turn, self._remind):
            return True
        await self._stable(turn, partial(self._append_events, heard=heard))
        return False

    def _stream(self, claim: Claim) -> Stream:
        adapter = self._growing.get(claim.platform) if claim.origin == "person" else None
        here = adapter is not None and (adapter.channels is None or claim.channel in adapter.channels)
        return Stream(
            self._db,
            claim,
            adapter if here and isinstance(adapter, Streams) else None,
            limit=self._limits.get(claim.platform, turns.LIMIT),
            reply_to=claim.reply_to,
            clock=self._clock,
        )

    @asynccontextmanager
    async def _step(self, claim: Claim, now: datetime | None = None) -> AsyncIterator[turns.Step]:
        async with turns.step(self._db, claim, now=now or self._clock(), limits=self._limits, outbound=self._outbound) as step:
            yield step
        self._stored()

    async def _append_events(self, turn: RunningTurn, *, heard: Listened) -> None:
        claim = turn.claim
        async with self._step(claim) as step:
            events = await self._initiative.enriched(step.connection, claim, turn.state.tz, step.now)
            state = await queue_manager.append_events(step.connection, turn.state, events, turn=claim.turn, resumed=claim.resumed)
            state = await appointments.in_their_language(step, state)
            drafts = await self._listening.first(step, state, heard)
            agreed, numbers = await appointments.answered(step, claim) if not drafts else ([], set())
            drafts, turn.timers = [*drafts, *agreed], turn.timers | numbers
            state = await queue_manager.append(step.connection, state, self._named(drafts), at=step.now, turn=claim.turn)
            turn.offered = await offering(
                step.connection, claim, state, leave=self._listening.question is not None, small=self._settings.small
            )
            await queue_manager.note_view(step.connection, state, claim.turn)
        turn.state = state

    def _named(self, drafts: Sequence[Draft]) -> list[Draft]:
        """With the bot's name as the author of what it says."""
        return [replace(draft, author_name=self._settings.name) if draft.role == "assistant" else draft for draft in drafts]

    async def _load(self, claim: Claim) -> AgentState:
        return await agent_state.load(
            self._db,
            self._cache,
            agent=claim.agent,
            conversation=claim.conversation,
            place=claim.place,
            version=claim.fence.version,
            policy_version=claim.fence.policy_version,
        )

    async def _stable(self, turn: RunningTurn, act: Callable[[RunningTurn], Awaitable[T]]) -> T:
        """Do something that ends in a step, again from a new state when the old one had become stale."""
        for _ in range(REBUILDS):
            try:
                return await act(turn)
            except ContextChanged:
                turn.claim = await turns.refresh(self._db, turn.claim)
                turn.state, turn.status = await self._load(turn.claim), ""
                turn.seen_anew = True
        raise TryAgainLater("memory kept changing during the turn")

    # One pass ----------------------------------------------------------------------------------------

    async def _pass(self, turn: RunningTurn) -> bool:
        """One model call and the step it comes to. Returns whether the turn is over."""
        settings = self._settings
        seconds = asyncio.get_running_loop().time() - turn.started
        last = turn.used.exhausted(settings.bounds, seconds)
        context = await self._pressure.fit(turn)
        try:
            reply = await self._inference.ask(turn, context, "none" if last else "auto")
        except ContextOverflow:
            if await self._pressure.overflowed(turn, context):
                return False
            return await self._close(turn, "turn.apology")
        except OverBudget as over:
            return await self._close(turn, "turn.spent", spent=over.day)
        except ContentRefused as refused:
            return await self._filtered(turn, refused)
        except ModelError:  # away, and the turn cannot wait
            return await self._close(turn, "")
        bounds = replace(settings.bounds, memory_calls=turn.used.memory_calls) if last else settings.bounds
        said = echoes.unpacked(reply.text or "")
        repeats = partial(echoes.echo, instructions=self._pressure.literal, heard=turn.heard)
        planned = executor.without_echoes(executor.plan(reply.calls, turn.used, bounds), repeats)
        vectors = {text: vector for text in executor.queries(planned) if (vector := await self._meaning.of(text))}
        judged, spent = await self._keeper.judge(turn.claim.agent, executor.candidates(planned)) if self._keeper else ({}, ())
        return await self._commit(turn, replace(reply, text=said), planned, vectors, judged, spent, last=last, echo=repeats(said))

    async def _filtered(self, turn: RunningTurn, refused: ContentRefused) -> bool:
        """Set aside what the content filter refuses, and go on without it. Returns whether the turn is over."""
        part = None
        if not refused.answer and turn.set_aside < filtered.MOST:
            part = await filtered.culprit(
                turn.state, lambda shown: self._inference.refuses(turn, self._pressure.only(turn, shown))
            )
        if part is None:
            return await self._close(turn, "turn.declined")
        turn.set_aside += 1
        now = self._clock()
        async with self._step(turn.claim, now) as step:
            state = await filtered.set_aside(step.connection, turn.state, part, at=now, turn=turn.claim.turn)
            last = filtered.unanswerable(state)
            if last is None and turn.claim.addressed:
                await step.say(turns.ASIDE - turn.set_aside, filtered.told(state, part))
        turn.state, turn.status = state, ""  # it may name the entry that is withheld now
        log.warning("turn %d: a content filter refuses a %s, which is withheld from now on", turn.claim.turn, part.kind)
        return last is not None and await self._close(turn, "turn.unreadable", number=last.id)

    async def _commit(
        self,
        turn: RunningTurn,
        reply: Reply,
        planned: Sequence[Planned],
        vectors: Mapping[str, QueryVector],
        judged: Mapping[str, Judged],
        spent: Sequence[tuple[str, Usage]],
        *,
        last: bool,
        echo: echoes.Echo | None,
    ) -> bool:
        claim, now, settings = turn.claim, self._clock(), self._settings
        async with self._step(claim, now) as step:
            if turn.seen_anew:
                await queue_manager.note_view(step.connection, turn.state, claim.turn)
            call = CallContext(
                step.connection,
                claim,
                turn.state,
                now,
                vectors,
                settings.page_size,
                rules=settings.rules,
                judged=judged,
                asks=turn.asks,
                may_ask=self._listening.question is not None,
                timers=turn.timers,
                settled=turn.settled,
                replied=turn.replied,
            )
            ran = await executor.run(planned, call)
            outcome = executor.decide(
                await citing.checked(call, reply.text or "", self._initiative.count),
                ran,
                call.said,
                silent=call.silent,
                claim=claim,
                replied=turn.replied,
                nudged=turn.nudged,
                last=last,
                reminds=turn.reminds,
                echo=echo,
            )
            about = endings.unset(turn, call, outcome)
            once_more = bool(about) and not (turn.reminded or last)
            if once_more:  # a plain reply waits for what the agent makes of it; what was sent has been sent
                turn.held, outcome = "\n\n".join(outcome.say), executor.again(outcome, call.said)
            own = endings.own_words(turn, outcome, self._clock(), self._initiative.count)
            say = (own,) if own else outcome.say
            drafts = executor.drafts_of(reply.calls, ran, outcome, said=call.said, own=own)
            drafts += [Draft("user", "alert", appointments.PROMPT)] if once_more else []
            state = await queue_manager.append(
                step.connection, call.state, self._named(drafts), at=now, turn=claim.turn, visibility=call.visibility
            )
            used = after(turn.used, reply.usage, ran)
            step.passes, step.tokens = 1, reply.usage.prompt_tokens + reply.usage.completion_tokens
            step.memory_calls = used.memory_calls - turn.used.memory_calls
            step.memory_writes = used.memory_writes - turn.used.memory_writes
            step.nudged = outcome.ending == "nudge"
            record_usage(step, "chat", reply.model or self._settings.chat_model, reply.usage)
            for model, cost in spent:
                record_usage(step, "filter", model, cost)
            if claim.origin == "timed":
                if say and not await self._initiative.may_send(step.connection, claim, now):
                    raise Overtaken
                self._initiative.note(step, said=bool(say))
                step.end([event.id for event in reminders.due_in(claim)] if say else [])
            begun = turn.stream.rows if say else ()
            timed = claim.origin == "timed"
            for number, text in enumerate(say, 1):
                under = reminders.buttons(reminders.due_in(claim), state.locale) if timed and number == len(say) else ()
                await step.reply(text, claim.reply_to, begun, buttons=under, notify=timed)
                begun = ()
            if say:
                state = self._notice.give(step, state)
            if outcome.ending in ("yield", "apologise"):
                await endings.appoint(step, turn, state, about, self._initiative.count)
            if outcome.ending == "yield" and (asked := await self._listening.asked(step, state, turn.asks)):
                state = await queue_manager.append(
                    step.connection, state, self._named(asked), at=now, turn=claim.turn, visibility=call.visibility
                )
            step.finish = "done" if outcome.ending in ("yield", "apologise", "remind") else None
        if say:
            turn.stream.taken()
        turn.state, turn.used, turn.settled = state, used, call.settled
        turn.reminded, turn.replied = turn.reminded or once_more, turn.replied or bool(say)
        turn.nudged |= outcome.ending == "nudge"
        return step.finish is not None

    async def _remind(self, turn: RunningTurn) -> bool:
        """Say the turn's reminders without the model, in one message, and end their events. Returns whether the turn is over."""
        claim, now, due = turn.claim, self._clock(), reminders.due_in(turn.claim)
        text = reminders.in_own_words(due, now, turn.state.locale)
        left = tuple(event for event in claim.events if event not in due)
        async with self._step(claim, now) as step:
            if not await self._initiative.may_send(step.connection, replace(claim, events=due), now):
                raise Overtaken
            state = await queue_manager.append_events(step.connection, turn.state, due, turn=claim.turn, resumed=True)
            said = Draft("assistant", "message", text)
            state = await queue_manager.append(step.connection, state, self._named([said]), at=now, turn=claim.turn)
            await step.reply(text, buttons=reminders.buttons(due, turn.state.locale), notify=True)
            step.end([event.id for event in due])
            step.finish = None if left else "done"
        self._initiative.count("reminder_own_words")
        turn.claim, turn.state = replace(claim, events=left), state
        return not left

    async def _close(self, turn: RunningTurn, line: str, *, spent: date | None = None, number: int = 0) -> bool:
        """End the turn with a line of the catalogue to whoever addressed the bot. `spent`: the day on which it is said once and not again."""
        if turn.reminds:
            return await self._remind(turn)
        now = self._clock()
        owed = line and turn.claim.addressed and not turn.replied
        say = (catalogue.say(line, turn.state.locale, number=number),) if owed else ()
        async with self._step(turn.claim, now) as step:
            if say and spent and not await spending.tell(step.connection, turn.claim.agent, spent):
                say = ()
            drafts = [Draft("assistant", "message", text) for text in say]
            state = await queue_manager.append(step.connection, turn.state, self._named(drafts), at=now, turn=turn.claim.turn)
            for text in say:
                await step.reply(text, turn.claim.reply_to, turn.stream.rows)
            asked = appointments.in_question(turn.claim, state, ()) if turn.claim.origin == "person" else ""
            await endings.appoint(step, turn, state, "" if turn.settled else asked, self._initiative.count)
            step.finish = "done"
        turn.state = state
        return True
