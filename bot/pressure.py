"""Memory pressure: prompts that fit the window, the warning, and the flush with its recursive summary (the paper's queue manager)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bot.engine import turns
from bot.engine.events import Claim
from bot.functions import SCHEMAS
from bot.llm import ModelClient, Usage
from bot.margin import Margin
from bot.persona import Persona
from bot.prompts import Prompts
from bot.running_turn import AgentSettings, RunningTurn
from bot.summariser import summarise
from memory import fifo_queue, main_context, queue_manager, usage, working_context
from memory.agent_state import AgentState
from memory.db import Connection, Database
from memory.main_context import MainContext, local, package
from memory.working_context import Entry

WARNING_TOKENS = 120
"""Room that the memory pressure alert itself needs."""


class Pressure:
    """Builds main contexts and keeps them within the window."""

    def __init__(
        self,
        db: Database,
        model: ModelClient,
        settings: AgentSettings,
        prompts: Prompts,
        persona: Persona,
        *,
        count: Callable[[str], int],
        clock: Callable[[], datetime],
    ) -> None:
        """`count` gives a text's tokens, `clock` the time (aware)."""
        self._db = db
        self._model = model
        self._settings = settings
        self._prompts = prompts
        self._persona = persona
        self._count = count
        self._clock = clock
        self.margin = Margin()

    def window(self) -> int:
        """Tokens that a prompt may take, as our tokenizer counts: the budget less the reply's reserve and the model's margin."""
        return int((self._settings.budget - self._settings.reply_reserve) / self.margin.factor)

    def fixed_share(self) -> float:
        """The share of the window that instructions, schemas and an empty working context take; start-up refuses too much."""
        fixed = self._count(self._system(())) + sum(self._count(str(schema.as_tool())) for schema in SCHEMAS)
        return fixed / self.window()

    async def fit(self, turn: RunningTurn) -> MainContext:
        """A prompt that fits the window: warned of pressure once, flushed when full (the paper's queue manager)."""
        giant = self.window()
        while True:
            window = self.window()
            context = self._build(turn.state, giant)
            limits = self._thresholds(context)
            if context.tokens < limits.warn:
                return context
            if context.tokens < limits.flush and turn.state.warned:
                return context
            if not turn.state.warned:
                warned = self._build(turn.state, giant if context.tokens < window else max(400, window // 8))
                if warned.tokens + WARNING_TOKENS < min(limits.flush, window):
                    await self._warn(turn)
                    return self._build(turn.state, giant if context.tokens < window else max(400, window // 8))
            if not await self.flush(turn, context):
                if giant <= 400:
                    return context
                giant = max(400, giant // 2)

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

    async def flush(self, turn: RunningTurn, context: MainContext) -> bool:
        """Evict the oldest exchanges and summarise them. Returns False when nothing can leave the queue."""
        limits = self._thresholds(context)
        evicted = fifo_queue.plan_eviction(turn.state.queue, context.queue, limits.after_flush)
        if evicted == 0:
            return False
        summary = await summarise(
            self._model, self._settings.summary_model, self._prompts.summary, turn.state.summary, turn.state.queue[:evicted],
            zone=turn.state.tz, window=self.window(), count=self._count,
        )  # fmt: skip
        now = self._clock()
        async with turns.step(self._db, turn.claim, now=now) as step:
            state = await queue_manager.flush(
                step.connection, turn.state, evicted, summary.text, failed=summary.failed, at=now, turn=turn.claim.turn
            )
            for used in summary.usages:
                await record_usage(step.connection, turn.claim, "summary", self._settings.summary_model, used, now)
        turn.state = state
        return True

    def _system(self, entries: Sequence[Entry]) -> str:
        limit = max(500, self._settings.budget * 3 // 10)
        return f"{self._prompts.system}\n\n# Working context\n" + working_context.render(
            entries, self._persona.text, self._count, limit
        )

    def _build(self, state: AgentState, giant: int) -> MainContext:
        status = package(
            "status", time=local(self._clock(), state.tz), place=state.place.label,
            recall_storage=f"{state.recall_total} messages" + (f" since {state.since.astimezone(state.tz):%Y-%m-%d}" if state.since else ""),
            archival_storage=f"{state.archival_total} texts" + (f", tags: {', '.join(state.tags[:30])}" if state.tags else ""),
        )  # fmt: skip
        return main_context.build(
            system=self._system(state.entries), schemas=[schema.as_tool() for schema in SCHEMAS], summary=state.summary, queue=state.queue,
            status=status, zone=state.tz, place=state.place.label, giant=giant, count=self._count,
        )  # fmt: skip


async def record_usage(connection: Connection, claim: Claim, purpose: str, model: str, used: Usage, now: datetime) -> None:
    """Note what one model call of a turn cost."""
    await usage.record(
        connection, agent=claim.agent, turn=claim.turn, purpose=purpose, model=model, prompt=used.prompt_tokens,
        cached=used.cached_tokens, completion=used.completion_tokens, at=now,
    )  # fmt: skip
