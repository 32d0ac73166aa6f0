"""Memory pressure: prompts that fit the window, the warning, and the flush with its recursive summary (the paper's queue manager)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bot.config.persona import Persona
from bot.engine import turns
from bot.engine.turns import record_usage
from bot.functions import FULLEST, offered
from bot.model.calls import FunctionSchema
from bot.model.margin import LEAST, LEAST_EXACT, Margin
from bot.model.processor import Processor
from bot.model.replies import Reply
from bot.prompts import Prompts
from bot.turn import echoes
from bot.turn.filtered import Part, only
from bot.turn.state import AgentSettings, RunningTurn
from bot.turn.summariser import Summary, summarise
from memory import fifo_queue, main_context, queue_manager, working_context
from memory.agent_state import AgentState
from memory.db import Database
from memory.main_context import MainContext, package
from memory.messages import Message
from memory.tokens import ESTIMATED, MARGIN, encoding_of
from memory.working_context import Entry, one_line
from memory.zones import local, zone_named

WARNING_TOKENS = 60
"""Room that the memory pressure alert itself needs."""
SMALLEST = 400
"""Characters that are shown at least of a giant message."""
FIXED_SHARE = 0.75
"""The most that a growing working context makes the fixed part take of the window: a queue must have room to be warned and flushed."""
UNKNOWN_ZONE = "unknown; the times here are UTC, not theirs"
LEAST_SHOWN = 500
"""Tokens of the working context that are shown whatever the window."""


class Pressure:
    """Builds main contexts and keeps them within the window."""

    def __init__(
        self,
        db: Database,
        processor: Processor,
        settings: AgentSettings,
        prompts: Prompts,
        persona: Persona,
        *,
        count: Callable[[str], int],
        clock: Callable[[], datetime],
    ) -> None:
        """`count` gives a text's tokens, `clock` the time (aware)."""
        self._db = db
        self._processor = processor
        self._settings = settings
        self._prompts = prompts
        self._persona = persona
        self._count = count
        self._clock = clock
        self._functions = max(
            sum(count(str(each.as_tool())) for each in offered(needs, small=settings.small)) for needs in FULLEST
        )
        self._instructions = count(prompts.system) + self._functions
        self._estimated = encoding_of(settings.chat_model) == ESTIMATED
        self.literal = echoes.sentences(prompts.system, persona.character, persona.tone, *persona.limits)
        """What the prompt says word for word and no reply may repeat; emergency lines are there to be said."""
        self.margin = Margin(least=LEAST if self._estimated else LEAST_EXACT)

    def window(self) -> int:
        """Tokens that a prompt may take, as our tokenizer counts: the budget less the reply's reserve and the model's margin."""
        return int((self._settings.budget - self._settings.reply_reserve) / self.margin.factor)

    def fixed_share(self) -> float:
        """The share of the window that instructions, schemas and an empty working context take; start-up refuses too much."""
        # These texts are English, so an unknown tokenizer is not far from the one that is counted with.
        return self.fixed() / (MARGIN if self._estimated else 1) / self.window()

    def fixed(self) -> int:
        """Tokens of instructions, all functions that may be offered, and persona."""
        return sum(map(self._count, self._system((), ""))) + self._functions

    async def fit(self, turn: RunningTurn) -> MainContext:
        """A prompt that fits the window: warned of pressure once, flushed when full (the paper's queue manager)."""
        if turn.state.pending_from is not None and not turn.state.summary_tail:
            await self._resummarise(turn)
        giant = self.window()  # in characters: a message that takes more than about a quarter of the window is shortened
        while True:
            window = self.window()
            context = self._build(turn, giant)
            limits = self._thresholds(context)
            warned = turn.state.warned or turn.state.unkept  # nothing may be saved, so there is nothing to warn of
            if context.tokens < limits.warn or (warned and context.tokens < limits.flush):
                return context
            if not warned:
                # One event may have leapt over both marks; shown shortened, it still leaves room for the warned pass.
                shown = giant if context.tokens + WARNING_TOKENS < limits.flush else max(SMALLEST, window // 8)
                if self._build(turn, shown).tokens + WARNING_TOKENS < limits.flush:
                    await self._warn(turn)
                    return self._build(turn, shown)
            if not await self.flush(turn, context):
                if giant <= SMALLEST:
                    return self._least(turn)
                giant = max(SMALLEST, giant // 2)

    def _least(self, turn: RunningTurn) -> MainContext:
        """What fits when nothing can be evicted: without what the turn did first, then without others' words, at last the newest alone."""
        queue = turn.state.queue
        asked = fifo_queue.answering(queue)
        own = [index for index in asked if queue[index].kind != "quote"]
        for keep in (asked, own, own[-1:]):
            for shown in (SMALLEST, SMALLEST // 2, SMALLEST // 4):
                context = main_context.trimmed(self._build(turn, shown), self.window(), keep)
                if context.tokens <= self.window():
                    return context
        return context

    def _thresholds(self, context: MainContext) -> fifo_queue.Thresholds:
        return fifo_queue.thresholds(
            self.window(),
            context.fixed + context.summary,
            warning=self._settings.warning,
            flush=self._settings.flush,
            evict=self._settings.evict,
        )

    async def _warn(self, turn: RunningTurn) -> None:
        now = self._clock()
        async with turns.step(self._db, turn.claim, now=now) as step:
            state = await queue_manager.warn(step.connection, turn.state, at=now, turn=turn.claim.turn)
        turn.state = state

    async def flush(self, turn: RunningTurn, context: MainContext, *, force: bool = False) -> bool:
        """Evict the oldest exchanges and summarise them. Returns False when nothing can leave the queue.

        `force`: to half of the queue's present size, however small; the endpoint found it too long.
        """
        target = self._thresholds(context).after_flush
        if force:
            target = min(target, sum(context.queue) // 2)
        evicted = fifo_queue.plan_eviction(turn.state.queue, context.queue, target)
        if evicted == 0:
            return False
        summary, _ = await self._summary(turn, evicted)
        now = self._clock()
        async with turns.step(self._db, turn.claim, now=now) as step:
            state = await queue_manager.flush(
                step.connection, turn.state, evicted, summary.text, tail=summary.tail, at=now, turn=turn.claim.turn
            )
            self._record(step, summary)
        turn.state = state
        return True

    async def _resummarise(self, turn: RunningTurn) -> None:
        """Make the summary anew from recall storage, after something was forgotten that it covered."""
        summary, made_from = await self._summary(turn, 0)
        now = self._clock()
        async with turns.step(self._db, turn.claim, now=now) as step:
            state = await queue_manager.resummarise(
                step.connection, turn.state, made_from, summary.text, tail=summary.tail, at=now, turn=turn.claim.turn
            )
            self._record(step, summary)
        turn.state = state

    async def _summary(self, turn: RunningTurn, evicted: int) -> tuple[Summary, list[Message]]:
        """The summary of what stood, what an earlier one lacks, and the evicted messages; and what it was made of."""
        async with self._db.agent(turn.claim.agent, turn.claim.place) as connection:
            leaving = await queue_manager.leaving(connection, turn.state, evicted)

        async def ask(messages: Sequence[Mapping[str, str]], longest: int) -> Reply:
            counted = sum(self._count(message["content"]) for message in messages)
            return await self._processor.think(
                turn.claim.agent, "summary", messages, tool_choice="none", counted=counted, max_tokens=longest
            )

        summary = await summarise(
            ask, self._prompts.summary, turn.state.summary, leaving, zone=turn.state.tz, window=self.window(), count=self._count
        )
        return summary, leaving

    def _record(self, step: turns.Step, summary: Summary) -> None:
        for used in summary.usages:
            record_usage(step, "summary", self._settings.summary_model, used)

    async def overflowed(self, turn: RunningTurn, context: MainContext) -> bool:
        """The endpoint refused a prompt as too long in spite of the count: flush and learn. False when there is nothing left to try."""
        return self.margin.overflowed() | await self.flush(turn, context, force=True)

    def _system(self, entries: Sequence[Entry], person: str, told: int = 0) -> tuple[str, str]:
        """The instructions, and who the agent is with these entries; `told` tokens of them stand elsewhere."""
        most = min(self._settings.budget * 3 // 10, int(self.window() * FIXED_SHARE) - self._instructions)
        limit = max(LEAST_SHOWN, most - told)
        return self._prompts.system, working_context.render(entries, self._persona.text, person, self._count, limit)

    def _status(self, state: AgentState) -> str:
        return package(
            "status",
            time=local(self._clock(), state.tz),
            time_zone="" if zone_named(state.zone) else UNKNOWN_ZONE,
            place=state.place.label,
            recall_storage=f"{state.recall_total} messages"
            + (f" since {state.since.astimezone(state.tz):%Y-%m-%d}" if state.since else ""),
            archival_storage=f"{state.archival_total} texts" + (f", tags: {', '.join(state.tags[:30])}" if state.tags else ""),
            working_context=[f"{entry.section}: {one_line(entry.content)}" for entry in state.later_entries] or None,
        )

    def _build(self, turn: RunningTurn, giant: int) -> MainContext:
        turn.status = turn.status or self._status(turn.state.shown)
        return self.shown(turn.state, turn.offered, self._images(turn), giant, turn.status)

    def shown(
        self,
        state: AgentState,
        functions: Sequence[FunctionSchema],
        images: Sequence[Mapping[str, str]] = (),
        giant: int | None = None,
        status: str = "",
    ) -> MainContext:
        """The prompt of a state, whatever its size. `giant`: the most characters shown of one text; `status`: the turn's, made now without it."""
        state = state.shown
        status = status or self._status(state)
        later = {entry.id for entry in state.later_entries}
        return main_context.build(
            system=self._system([e for e in state.entries if e.id not in later], state.person, self._count(status)),
            schemas=[schema.as_tool() for schema in functions],
            summary=state.slot0,
            queue=state.queue,
            status=status,
            zone=state.tz,
            place=state.place.label,
            giant=giant or self.window(),
            count=self._count,
            images=images,
            image_tokens=self._settings.image_tokens,
        )

    def only(self, turn: RunningTurn, parts: frozenset[Part]) -> MainContext:
        """The prompt with everything but these parts withheld."""
        return self._build(replace(turn, state=only(turn.state, parts), status=""), self.window())

    def _images(self, turn: RunningTurn) -> Sequence[Mapping[str, str]]:
        """As many of the turn's pictures as leave half of the window to everything else."""
        return turn.images[: self.window() // 2 // max(1, self._settings.image_tokens)]
