"""The model of a chaos run: answers with the tokens of what was said, remembers when it is asked to, and fails on command."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tests.chaos.auditor import ANSWER
from tests.chaos.snapshots import tokens
from tests.scenarios.discord_bot import packages_in
from tests.servers.model import Delay, Gate, Request, Reset, ScriptedModel, Status, Step, call, reply

SUMMARISER = "summariser"
"""The summary model's name, by which its requests are known."""
REMEMBER = "please remember that"
REMEMBERED_REQUESTS = 100
Mode = Literal["well", "failing", "hanging", "resetting"]


@dataclass(slots=True)
class Brain:
    """A policy for `ScriptedModel`. An answer takes between the two seconds of `takes`."""

    seed: int
    takes: tuple[float, float] = (0.05, 0.3)
    answered: set[str] = field(default_factory=set)
    _chance: random.Random = field(init=False)
    _mode: Mode = "well"
    _met: int = 0
    _hanging: list[Gate] = field(default_factory=list)
    _caught: list[tuple[Callable[[Request], bool], Gate]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def become(self, mode: Mode) -> int:
        """How requests are treated from now on; how many were treated as until now. What hangs is reset when that is over."""
        self._mode, met, self._met = mode, self._met, 0
        for gate in self._hanging:
            gate.release()
        self._hanging.clear()
        return met

    def catch(self, wanted: Callable[[Request], bool]) -> Gate:
        """Keeps the next request that is wanted waiting; `reached` tells that it came, `release` lets it be answered."""
        gate = Gate()
        self._caught.append((wanted, gate))
        return gate

    def __call__(self, request: Request) -> Step:
        for one in self._caught:
            wanted, gate = one
            if wanted(request):
                self._caught.remove(one)
                gate.step = self._answer(request)
                return gate
        self._met += 1
        match self._mode:
            case "failing":
                return Status(500)
            case "resetting":
                return Reset(after=True)
            case "hanging":
                self._hanging.append(gate := Gate(Reset(after=True)))
                return gate
            case "well":
                return Delay(self._chance.uniform(*self.takes), self._answer(request))

    def _answer(self, request: Request) -> Step:
        if request.model == SUMMARISER:
            return reply("They told each other of their days.")
        said = unanswered(request)
        wanted = [] if said.called else [token for token, text in said.texts if REMEMBER in text]
        if wanted:
            return reply(None, *(_memory(number, token) for number, token in enumerate(wanted)))
        found = [token for token, _ in said.texts]
        self.answered.update(found)
        return reply(ANSWER + " | ".join(found))


@dataclass(slots=True)
class Unanswered:
    """What was said since the model last spoke, as token and text; `called`: whether it made calls since."""

    texts: list[tuple[str, str]] = field(default_factory=list)
    called: bool = False


def unanswered(request: Request) -> Unanswered:
    """What the newest answer is for."""
    found = Unanswered()
    for message in request.messages:
        if message.get("role") == "assistant":
            found.called = bool(message.get("tool_calls"))
            if not found.called:
                found.texts.clear()
        elif message.get("role") == "user":
            texts = [str(each["message"]) for each in packages_in(message) if "type" not in each and "message" in each]
            found.texts += [(token, text) for text in texts for token in tokens(text)[:1]]
    return found


def _memory(number: int, token: str):  # type: ignore[no-untyped-def]
    if int(token.rpartition("-")[2]) % 2:
        return call(
            "archival_storage_insert", content=f"The walk of {token} went by the sea.", tags=["walk"], request_heartbeat=True
        )
    return call(
        "working_context_append", section="key_facts", content=f"Number {token} is for the garden.", request_heartbeat=True
    )


async def forgetful(model: ScriptedModel) -> None:
    """Let go of the bodies of old requests, of which a long run has gigabytes. Ends by being cancelled."""
    while True:
        await model.wait_for(len(model.requests) + REMEMBERED_REQUESTS)
        for request in model.requests[:-REMEMBERED_REQUESTS]:
            request.body.clear()
