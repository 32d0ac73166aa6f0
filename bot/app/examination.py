"""The model's part of `bot doctor`: it is tried with what the bot really sends, and each fault comes with the settings that mend it.

mode     native function calls, calls by JSON schema: a fact told is kept, asked for is known, and is found on a second page of a search
stream   an answer in pieces still has its calls
picture  it sees one, where it is said to
window   a prompt as large as the budget is read from its first line to its last
speed    how long reading and writing so much takes, against the time-out
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bot.app import trials
from bot.app.services import Names
from bot.app.trials import asker, specimen_for
from bot.config.findings import Finding, right, wrong
from bot.config.loading import Loaded
from bot.model.calls import FunctionSchema
from bot.model.client import ModelClient
from bot.model.errors import ContextOverflow, ModelError
from bot.model.replies import Reply
from bot.model.stream import Partial
from bot.operations.endpoint import what_to_do
from bot.turn.specimen import Ask, Specimen, Task, attempt, line
from memory.main_context import MainContext
from memory.messages import Message

REHEARSAL_AWAY = "The rehearsal model inside does not answer; start again, and report it if that does not help."
Mode = Literal["native", "schema", "auto"]
WORDS: dict[Mode, str] = {"native": "function calls", "schema": "calls by JSON schema"}
FACT = Task("My sister Mia moved to Porto.", call="working_context_append|archival_storage_insert", arguments="Porto")
ASKED = Task("Where does my sister live?", answer="Porto", known=("Nora's sister Mia lives in Porto.",))
SEARCH = Task(
    "Which number did I once give you for the garden gate?",
    call="recall_storage_search",
    arguments=r"page\W+2",
    answer="4711",
    found=("The gate squeaks, I should oil it.", "The number for the garden gate is 4711."),
)
TASKS = {
    "a fact that was told is kept": FACT,
    "a fact in view is known": ASKED,
    "what is on a search's second page is found": SEARCH,
}
SECRET = "The word of the day is marzipan."
QUESTION = "Which word of the day did I tell you, right at the beginning? Answer with that word alone."
FILLER = "On day {n} we walked along the river, past the old mill and the bakery, and talked about the weather and the ducks."
SHARES = (1.0, 0.75, 0.5, 0.375, 0.25)
"""Of the budget, what is tried until a prompt is read whole."""
LEAST = 3000
"""Tokens of the smallest budget worth proposing."""
SLACK = 1.5
"""How much longer than measured an answer may take before the time-out."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How a model did in one way of asking, with the prompts of one size. `faults`: what did not work; `refusal`: the endpoint's words."""

    mode: Mode
    small: bool
    faults: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def works(self) -> bool:
        """Everything did."""
        return not (self.faults or self.refusal)

    def __str__(self) -> str:
        what = self.refusal or "; ".join(f"not so: {fault}" for fault in self.faults)
        return f"{WORDS[self.mode]} do not work ({what})"


@dataclass
class Examination:
    """One look at the configured model."""

    loaded: Loaded
    client: ModelClient
    names: Names
    replies: list[Reply] = field(default_factory=list)
    pieces: list[Partial] = field(default_factory=list)
    """Of answers that were streamed, what was there whenever more came."""

    async def findings(self) -> AsyncIterator[Finding]:
        """Everything about the model, a line a finding."""
        configured = self.loaded.config.model
        try:
            hello = await self.client.complete(
                self.names.chat,
                [{"role": "user", "content": "Say hello in one word."}],
                max_tokens=800,
                temperature=configured.temperature,
            )
        except ModelError as error:
            yield wrong(f"model: {error}", REHEARSAL_AWAY if self.loaded.rehearsal else what_to_do(error, self.loaded))
            return
        if not (hello.text or "").strip():
            yield wrong(f"model: {self.names.chat} answered without text ({hello.finish})", "Choose another model.chat.")
            return
        if self.loaded.rehearsal:
            yield right(
                "model: the rehearsal model inside; it is no language model (set model.base_url or model.api_key_env for a real one)"
            )
            return
        yield right(f"model: {self.names.chat} answers ({hello.seconds:.1f} s)")
        before = self.client.calls, self.client.streams
        try:
            async for finding in self._tried():
                yield finding
        finally:
            self.client.calls, self.client.streams = before

    async def _tried(self) -> AsyncIterator[Finding]:
        size = self.loaded.config.model.size
        self.client.calls = self.loaded.config.model.calls
        small = await trials.small(self.loaded, self.client, self.names, lambda _: None)
        found = [await self._trial(mode, small=small) for mode in WORDS]
        whole = await self._whole(found[0]) if found[0].faults and self.client.streams else None
        if whole:
            found[0] = whole
            lost = "stream: function calls are lost when an answer is streamed"
            yield wrong(lost, "Set model.stream to false.", fixes={"model.stream": False})
        elif found[0].works:
            yield right(f"stream: {'works, with function calls' if self.pieces else 'none, answers come whole'}")
        if not small and not any(trial.works for trial in found):
            found += [await self._trial(mode, small=True) for mode in WORDS]
        best = next((trial for trial in found if trial.works), None)
        for finding in verdict(found, self.loaded.config.model.calls, size, self.names.chat):
            yield finding
        if best is None:
            return
        self.client.calls = best.mode
        specimen = specimen_for(self.loaded, self.names, small=best.small)
        if self.loaded.config.model.sees_images:
            yield await self._picture(specimen)
        window, seconds, tokens = await self._window(specimen)
        yield window
        if seconds:
            yield await self._speed(specimen, seconds, tokens)

    async def _trial(self, mode: Mode, *, small: bool) -> Trial:
        self.client.calls = mode
        specimen = specimen_for(self.loaded, self.names, small=small)
        ask = asker(self.client, self.names.chat, specimen, self.loaded, self.pieces.append)
        faults = []
        try:
            for name, task in TASKS.items():
                done = await attempt(specimen, ask, task)
                if not (done.called and done.answered):
                    faults.append(name)
        except ModelError as error:
            return Trial(mode, small, refusal=str(error))
        return Trial(mode, small, tuple(faults))

    async def _whole(self, streamed: Trial) -> Trial | None:
        """A trial without a stream, where one with it failed and this one does not."""
        self.client.streams = False
        whole = await self._trial(streamed.mode, small=streamed.small)
        self.client.streams = not whole.works
        return whole if whole.works else None

    async def _picture(self, specimen: Specimen) -> Finding:
        picture = {"name": "square.png", "url": f"data:image/png;base64,{base64.b64encode(red_square()).decode()}"}
        asked = [line(0, "user", "Which colour is this picture? One word.")]
        functions = specimen.functions()
        try:
            reply = await self._asker(specimen)(specimen.request(asked, (), functions, [picture]), functions)
        except ModelError as error:
            told = str(error)
        else:
            if any(word in (reply.text or "").casefold() for word in ("red", "rot", "rouge", "rojo", "rosso")):
                return right("model.sees_images: a picture is seen")
            told = "a red square was not recognised"
        return wrong(
            f"model.sees_images: is on, and {told}",
            "Set model.sees_images to false, or choose a model that sees.",
            fatal=False,
            fixes={"model.sees_images": False},
        )

    async def _window(self, specimen: Specimen) -> tuple[Finding, float, int]:
        """Whether a prompt of the whole budget is read from the beginning; with the seconds that the largest good one took, and its tokens."""
        context = self.loaded.config.context
        first = ""
        for share in SHARES:
            budget = int(context.budget * share) // 100 * 100
            if share < 1 and budget < LEAST:
                break
            fault, seconds, tokens = await self._read_whole(specimen, int(specimen.pressure.window() * share))
            if not fault and share == 1:
                return (
                    right(f"context.budget: {context.budget:,} tokens are read from the first line to the last"),
                    seconds,
                    tokens,
                )
            if not fault:
                fixes = {"context.budget": budget, "context.reply_reserve": min(context.reply_reserve, budget // 6)}
                remedy = f"Set context.budget to {budget}, or give the endpoint a larger window ({_LARGER})."
                return wrong(f"context.budget: {context.budget:,} tokens, and {first}", remedy, fixes=fixes), seconds, tokens
            first = first or fault
        return (
            wrong(f"context.budget: {first}, and of smaller prompts too", f"Give the endpoint a larger window ({_LARGER})."),
            0.0,
            0,
        )

    async def _read_whole(self, specimen: Specimen, tokens: int) -> tuple[str, float, int]:
        """What is wrong with a prompt of so many tokens; empty: nothing. With the seconds of the answer, and the prompt's tokens."""
        functions = specimen.functions()
        context = filled(specimen, functions, tokens)
        try:
            reply = await self._asker(specimen)(context, functions)
        except ContextOverflow:
            return "the endpoint refuses so long a prompt", 0.0, 0
        except ModelError as error:
            return str(error), 0.0, 0
        self.replies.append(reply)
        if "marzipan" in (reply.text or "").casefold():
            return "", reply.seconds, reply.usage.prompt_tokens or context.tokens
        read = reply.usage.prompt_tokens
        cut = 0 < read < context.tokens * 0.6
        return (f"only {read:,} tokens of a prompt are read" if cut else "the beginning of the prompt is forgotten"), 0.0, 0

    async def _speed(self, specimen: Specimen, seconds: float, tokens: int) -> Finding:
        """Whether reading a full prompt and writing a full answer fit into the time-out."""
        chosen, reserve = self.loaded.config.model, specimen.settings.reply_reserve
        asked = [{"role": "user", "content": "Count from 1 to 80, numbers only, with blanks between them."}]
        try:
            counted = await self.client.complete(self.names.chat, asked, max_tokens=400, temperature=chosen.temperature)
        except ModelError as error:
            return wrong(f"speed: cannot be measured ({error})", "Try again.", fatal=False)
        wrote = max(1, counted.usage.completion_tokens or len(counted.text or "") // 3) / max(counted.seconds, 0.001)
        whole = seconds * specimen.settings.budget / max(1, tokens) + reserve / wrote
        told = f"a full prompt and a full answer take about {whole:,.0f} s ({tokens / seconds:,.0f} tokens/s read, {wrote:,.0f} written)"
        if whole <= chosen.timeout:
            return right(f"model.timeout: {told}")
        enough = min(3600, math.ceil(whole * SLACK / 10) * 10)
        return wrong(
            f"model.timeout: is {chosen.timeout:g} s, and {told}",
            f"Set model.timeout to {enough}, or lower context.budget and context.reply_reserve.",
            fixes={"model.timeout": enough},
        )

    def _asker(self, specimen: Specimen) -> Ask:
        return asker(self.client, self.names.chat, specimen, self.loaded)


_LARGER = "OLLAMA_CONTEXT_LENGTH, llama-server -c, vllm --max-model-len"


def verdict(found: Sequence[Trial], calls: Mode, size: str, name: str) -> list[Finding]:
    """What the trials say: a line for each way that works, and one about the way that is configured."""
    lines = [right(f"model: {WORDS[trial.mode]} work: {'; '.join(TASKS)}") for trial in found if trial.works]
    best = next((trial for trial in found if trial.works), None)
    faults = "; ".join(str(trial) for trial in found if not trial.works)
    if best is None:
        nearest = min(found, key=lambda trial: (bool(trial.refusal), len(trial.faults)))
        fixes = {} if nearest.mode == calls or nearest.refusal else {"model.calls": nearest.mode}
        way = f"; the least bad is model.calls: {nearest.mode} with model.size: {'small' if nearest.small else 'large'}"
        return [wrong(f"model: {name} cannot do what memory needs: {faults}", f"Choose another model.chat{way}.", fixes=fixes)]
    if best.small and not found[0].small:
        wanted = {"model.size": "small", "model.calls": best.mode}
        told = f"Set model.size to small and model.calls to {best.mode}."
        return [*lines, wrong(f"model.size: is {size}, and with the prompts for large models {faults}", told, fixes=wanted)]
    native = found[0]
    # `auto` goes over to the schema only where the endpoint refuses calls, not where the model does them badly.
    used: Mode = ("native" if native.works or not native.refusal else "schema") if calls == "auto" else calls
    if not any(trial.works and trial.mode == used for trial in found):
        return [
            *lines,
            wrong(f"model.calls: is {calls}, and {faults}", f"Set model.calls to {best.mode}.", fixes={"model.calls": best.mode}),
        ]
    if calls == "schema" and best.mode == "native":
        return [*lines, right("model.calls: schema works; native is the better choice")]
    through = (
        " (the endpoint refuses function calls, so they are asked for by JSON schema)"
        if used != calls == "auto" and used == "schema"
        else ""
    )
    return [*lines, right(f"model.calls: {calls} is right{through}")]


def filled(specimen: Specimen, functions: Sequence[FunctionSchema], tokens: int) -> MainContext:
    """A prompt of about so many tokens that tells a word at its beginning and asks for it at its end."""
    queue: list[Message] = [line(0, "user", SECRET), line(1, "assistant", "I will keep it in mind.")]
    ending = line(100_000, "user", QUESTION)
    bare = specimen.request([*queue, ending], (), functions).tokens
    each = specimen.request([*queue, *_filler(2), ending], (), functions).tokens - bare
    for number in range(max(0, (tokens - bare) // max(1, each))):
        queue += _filler(2 + 2 * number)
    return specimen.request([*queue, ending], (), functions)


def _filler(position: int) -> list[Message]:
    return [
        line(position, "user", FILLER.format(n=position)),
        line(position + 1, "assistant", f"A good walk, number {position}."),
    ]


def red_square(side: int = 32) -> bytes:
    """A PNG that is red all over."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\0\0" * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
