"""Budgets of a day: what model calls may cost per person and for the whole bot, in tokens and in money.

An estimate is taken before a call and settled after it, in the database, so that several processes cannot overspend together.
A call that a crash cuts off stays charged as estimated. Days are UTC days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from memory.db import Connection, Database, value

Spent = Literal["person", "bot"]


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in the currency of the price table."""

    prompt: float = 0.0
    cached: float = 0.0
    completion: float = 0.0

    def micros(self, prompt: int, cached: int, completion: int) -> int:
        """The price of a call in millionths of the currency; `cached` tokens are among the prompt's."""
        return round((prompt - cached) * self.prompt + cached * self.cached + completion * self.completion)


@dataclass(frozen=True, slots=True)
class Limits:
    """A day's budgets; 0 is none. Money is in the currency of the price table."""

    person_tokens: int = 0
    person_money: float = 0.0
    bot_tokens: int = 0
    bot_money: float = 0.0

    @property
    def any(self) -> bool:
        """Whether there is a budget at all."""
        return any((self.person_tokens, self.person_money, self.bot_tokens, self.bot_money))


@dataclass(frozen=True, slots=True)
class Reservation:
    """An estimate that was taken, to be settled."""

    agent: int
    day: date
    tokens: int
    micros: int


class OverBudget(Exception):
    """The budget of a `day` is spent; `whose` it is."""

    def __init__(self, whose: Spent, day: date) -> None:
        super().__init__(f"the day's budget of the {whose} is spent")
        self.whose = whose
        self.day = day


async def tell(connection: Connection, agent: int, day: date) -> bool:
    """True once a person and day: whoever gets it says, in the same transaction, that the budget is spent."""
    return bool(await value(connection, "SELECT tell_spent(%s, %s)", (agent, day)))


class Budgets:
    """Reserves and settles. Without limits it does nothing and costs nothing."""

    def __init__(self, db: Database, limits: Limits, prices: Mapping[str, Price]) -> None:
        self._db = db
        self._limits = limits
        self._prices = prices

    def price(self, model: str) -> Price:
        """The price of a model; `default` stands for models that the table does not name."""
        return self._prices.get(model) or self._prices.get("default") or Price()

    async def reserve(self, agent: int, model: str, *, prompt: int, completion: int, now: datetime) -> Reservation | None:
        """Take an estimate (tokens) off the budgets. None: there are no budgets. Raises OverBudget; then nothing was taken."""
        limits = self._limits
        if not limits.any:
            return None
        day = now.astimezone(UTC).date()
        taken = Reservation(agent, day, prompt + completion, self.price(model).micros(prompt, 0, completion))
        async with self._db.bare() as connection:
            whose = await value(
                connection,
                "SELECT reserve_spending(%s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    agent,
                    day,
                    taken.tokens,
                    taken.micros,
                    limits.person_tokens,
                    round(limits.person_money * 1e6),
                    limits.bot_tokens,
                    round(limits.bot_money * 1e6),
                ),
            )
        if whose:
            raise OverBudget(whose, day)
        return taken

    async def settle(self, taken: Reservation | None, model: str, *, prompt: int, cached: int, completion: int) -> None:
        """Replace an estimate by what the call cost; all zeros give it back."""
        if taken is None:
            return
        micros = self.price(model).micros(prompt, cached, completion)
        async with self._db.bare() as connection:
            await connection.execute(
                "SELECT settle_spending(%s, %s, %s, %s)",
                (taken.agent, taken.day, prompt + completion - taken.tokens, micros - taken.micros),
            )


def entry(
    *, agent: int, turn: int | None, purpose: str, model: str, prompt: int, cached: int, completion: int, at: datetime
) -> tuple[str, tuple[object, ...]]:
    """The statement that notes one model call (tokens as the endpoint reported them), for the transaction of the step it belongs to."""
    return (
        """INSERT INTO usage (agent_id, turn_id, purpose, model, prompt_tokens, cached_tokens, completion_tokens, at)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s)""",
        (agent, turn, purpose, model, prompt, cached, completion, at),
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them; zeros where it does not tell. Cached ones are among the prompt's."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )
