"""The one client for every OpenAI-compatible model endpoint: values in, values out, faults told apart.

`ModelClient.complete` sends repaired messages, learns what a model refuses (a temperature, `max_tokens`, a tool
choice) and leaves it out from then on, tries again where that is safe and short, and reads replies of any shape:
calls written as text become calls, reasoning never becomes text. Everything else is a `ModelError`.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self, cast
from urllib.parse import urlsplit

import openai

from bot.model.call_text import calls_in_text
from bot.model.calls import FunctionSchema
from bot.model.errors import (
    UNSENT,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    error_code,
    error_words,
    from_openai,
    silent,
    wrong_address,
)
from bot.model.habits import Habits, adapted
from bot.model.messages import (
    ChatMessage,
    ToolChoice,
    ids_in,
    meant_as_schema_reply,
    read_schema_reply,
    repair,
    schema_format,
    schema_messages,
    unique_ids,
    without_images,
)
from bot.model.replies import Body, Reply, decoded, dicts, mapping, native_calls, number, text_of, usage_of
from bot.model.shape import without_null, without_system
from bot.model.stream import Watch, read
from bot.model.thoughts import thinks_aloud
from bot.model.vendor import Back, stamped
from memory.sanitise import clean

log = logging.getLogger(__name__)

_LARGER = 4
"""By how much the reply cap grows when reasoning ate it and left no text."""

_EMBEDDING_BATCH = 256

PATIENT = 10
"""How many timeouts an answer may take in all while it keeps coming: one that never ends would hold the turn for ever."""


class ModelClient:
    """A connection pool to one endpoint.

    `timeout` is the longest silence in seconds: before the first piece of an answer, and between two of them. An answer that keeps
    coming may take `PATIENT` times as long. `extra` are parameters that every chat request gets as far as the model takes them.

    `calls` is how functions are asked for: the endpoint's own function calls, a JSON schema of the reply, or ("auto")
    the one until the endpoint refuses it for a model and then the other. `streams`: answers are asked for in pieces.
    `longest_wait` is how many seconds a call waits at most between two attempts; a longer `Retry-After` is handed
    to the caller in `ModelUnavailable`. `sleep` and `chance` (0 to 1) are arguments for the sake of tests.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 120.0,
        calls: Literal["auto", "native", "schema"] = "native",
        extra: Mapping[str, object] | None = None,
        streams: bool = True,
        attempts: int = 3,
        longest_wait: float = 5.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.calls = calls
        self.streams = streams
        self.base_url = base_url
        """Where requests go; completed by `/v1` where nothing was found without."""
        self._timeout = timeout
        self._extra = dict(extra or {})
        self._attempts = attempts
        self._longest_wait = longest_wait
        self._sleep = sleep
        self._chance = chance
        self._habits: dict[str, Habits] = {}
        self._plain: dict[str, bool] = {}
        # A proxy named in the environment must not get what is meant for this machine.
        local = re.match(r"https?://(localhost|127\.|\[::1\])", base_url) is not None
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or "none",  # local endpoints need no key, but the library insists on one
            timeout=timeout,
            max_retries=0,
            # Not the library's aiohttp transport: it sends a POST twice after a reset and takes a refused port for a hang.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False) if local else None,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def complete(
        self,
        model: str,
        messages: Sequence[ChatMessage],
        functions: Sequence[FunctionSchema] = (),
        *,
        tool_choice: ToolChoice = "auto",
        max_tokens: int,
        temperature: float | None = None,
        watch: Watch | None = None,
    ) -> Reply:
        """One inference pass; raises a `ModelError`. `watch` is told what is there so far, where the endpoint streams.

        `max_tokens` caps the reply. If the cap left neither text nor calls (reasoning took it all), the call is
        made once more with a larger one; a reply without text and calls can still come back, with `finish` "length".
        """
        started = time.perf_counter()
        ask = _Ask(model, messages, tuple(functions), tool_choice, max_tokens, temperature, watch)
        reply = await self._answer(ask)
        if reply.finish == "length" and not reply.text and not reply.calls:
            try:
                larger = await self._answer(replace(ask, max_tokens=max_tokens * _LARGER))
            except ContextOverflow:
                pass  # no room for more: the caller hears that the cap was hit
            else:
                reply = replace(larger, usage=reply.usage + larger.usage, prompt_seen=larger.usage.prompt_tokens)
        return replace(reply, seconds=time.perf_counter() - started)

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in order; raises a `ModelError`."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _EMBEDDING_BATCH):
            # Endpoints refuse an empty text and fail on a lone surrogate.
            batch = [clean(text) or " " for text in texts[start : start + _EMBEDDING_BATCH]]
            vectors += await self._embed_batch(model, batch)
        return vectors

    async def models(self) -> list[str]:
        """The names of the models that the endpoint offers; raises a `ModelError`."""
        body = await self._tried("", lambda _: _whole(self._client.models.with_raw_response.list()), lambda _: False)
        return [str(item["id"]) for item in dicts(body.get("data")) if item.get("id")]

    async def _embed_batch(self, model: str, batch: list[str]) -> list[list[float]]:
        create = self._client.embeddings.with_raw_response.create
        send = lambda _: _whole(create(model=model, input=batch, encoding_format="float"))  # noqa: E731
        body = await self._tried(model, send, lambda _: False)
        items = sorted(dicts(body.get("data")), key=lambda item: number(item.get("index")))
        vectors = [item["embedding"] for item in items if isinstance(item.get("embedding"), list)]
        if len(vectors) != len(batch):
            raise ModelUnavailable(f"the endpoint gave {len(vectors)} embeddings for {len(batch)} texts")
        try:
            return [[float(number) for number in cast(list[Any], vector)] for vector in vectors]
        except (TypeError, ValueError):
            raise ModelUnavailable("the endpoint gave embeddings that are no lists of numbers") from None

    async def _answer(self, ask: "_Ask") -> Reply:
        """The reply to one request; from a model that fails over its own calls again and again, one without any."""
        try:
            return await self._chosen(ask)
        except ModelUnavailable as failure:
            if not (failure.miscalled and ask.functions):
                raise
            log.info("model %s writes calls that its endpoint cannot read; asking without functions", ask.model)
        return await self._chosen(replace(ask, functions=()))

    async def _chosen(self, ask: "_Ask") -> Reply:
        """The reply to one request; an answer without choices is asked for once more."""
        for _ in range(2):
            body = await self._tried(ask.model, lambda alive: self._sent(ask, alive), lambda error: self._learned(ask, error))
            choices = dicts(body.get("choices"))
            if choices:
                return self._read(ask, body, choices[0])
        raise ModelUnavailable("the model endpoint answered twice without a choice")

    async def _sent(self, ask: "_Ask", alive: Callable[[], None]) -> bytes:
        """One request, and the body of its answer; `alive` is called whenever a piece of it comes."""
        completions, request = self._client.chat.completions, self._request(ask)
        # As `extra_body`, because the library walks through typed arguments: 10 ms of the loop for 100 messages.
        if "stream" not in request:
            return await _whole(completions.with_raw_response.create(model=ask.model, messages=(), extra_body=request))
        async with completions.with_streaming_response.create(model=ask.model, messages=(), extra_body=request) as response:
            watch = None if self._by_schema(ask) else ask.watch
            return await read(response, watch, alive, plain=self._shows(ask.model))

    def _shows(self, model: str) -> bool:
        """Whether a model's text can be shown while it is written: it keeps its thoughts apart, and "none" keeps it from calling."""
        return self._plain.get(model, False) and "none" not in self._habits.get(model, Habits()).refused_choices

    def _request(self, ask: "_Ask") -> dict[str, object]:
        habits = self._habits.get(ask.model, Habits())
        by_schema = self._by_schema(ask)
        back = Back(ask.model, habits.missing_thoughts, habits.thoughts)
        messages = schema_messages(ask.messages, ask.functions) if by_schema else repair(ask.messages, back)
        messages = messages if habits.images else without_images(messages)
        messages = messages if habits.system_role else without_system(messages)
        messages = messages if habits.null_content else without_null(messages)
        cap = min(ask.max_tokens, habits.largest_reply or ask.max_tokens)
        request: dict[str, object] = {"model": ask.model, "messages": messages, habits.token_argument: cap}
        if ask.temperature is not None and habits.temperature:
            request["temperature"] = ask.temperature
        if by_schema and habits.response_format:
            request["response_format"] = schema_format(ask.functions, ask.tool_choice)
        elif ask.functions and not by_schema:
            request["tools"] = [function.as_tool() for function in ask.functions]
            # "auto" is the default everywhere, and saying so makes some servers refuse.
            if ask.tool_choice != "auto" and ask.tool_choice not in habits.refused_choices:
                request["tool_choice"] = ask.tool_choice
        # Also where nobody watches: of a slow model it is told from a dead one by what comes.
        if self.streams and habits.streams:
            request |= {"stream": True} | ({"stream_options": {"include_usage": True}} if habits.stream_options else {})
        return request | habits.extras(self._extra, functions=bool(ask.functions))

    def _by_schema(self, ask: "_Ask") -> bool:
        refused = not self._habits.get(ask.model, Habits()).native_calls
        return bool(ask.functions) and (self.calls == "schema" or (self.calls == "auto" and refused))

    def _learned(self, ask: "_Ask", error: openai.APIStatusError) -> bool:
        """Whether the refusal taught something that makes another attempt worth while."""
        habits = self._habits.get(ask.model, Habits())
        changed = adapted(habits, self._request(ask), error.status_code, error_code(error), error_words(error), self._extra)
        if changed is None or (self.calls == "native" and not changed.native_calls):
            return False
        if habits.native_calls and not changed.native_calls:
            log.warning("the endpoint refuses function calls; asking by JSON schema from now on (set model.calls to schema)")
        log.info("model %s: habits changed after status %d", ask.model, error.status_code)
        self._habits[ask.model] = changed
        return True

    async def _tried(self, model: str, send: "_Send", learned: Callable[[openai.APIStatusError], bool]) -> Body:
        """The decoded body of an answer; tries again where it is safe and soon, else raises a `ModelError`."""
        attempt = 1
        while True:
            failure, again = await self._once(model, send, learned)
            if not isinstance(failure, ModelError):
                return failure
            if again == "now":
                continue
            wait = self._wait(attempt, failure)
            if again == "never" or attempt >= self._attempts or wait > self._longest_wait:
                raise failure
            log.info("model call is tried again in %.1f s: %s", wait, failure)
            await self._sleep(wait)
            attempt += 1

    async def _once(
        self, model: str, send: "_Send", learned: Callable[[openai.APIStatusError], bool]
    ) -> tuple[Body | ModelError, Literal["now", "later", "never"]]:
        # Errors are returned, not chained: the library's hold the endpoint's words, which may quote a message.
        known = self._habits.get(model)
        try:
            async with asyncio.timeout(PATIENT * self._timeout), asyncio.timeout(self._timeout) as silence:
                # The library's own timeout is per read, so a server that drips blanks would never end.
                content = await send(lambda: silence.reschedule(asyncio.get_running_loop().time() + self._timeout))
        except openai.APIStatusError as error:
            # What others learned while this request was on its way it could not heed.
            if (wrong_address(error) and self._completed()) or self._habits.get(model) != known or learned(error):
                return from_openai(error, model, self._timeout), "now"
            failure = from_openai(error, model, self._timeout)
            retried = isinstance(failure, ModelUnavailable) and (
                failure.miscalled or error.status_code == 429 or error.status_code >= 500
            )
            return failure, "later" if retried else "never"
        except openai.OpenAIError as error:
            unsent = type(error.__cause__).__name__ in UNSENT
            return from_openai(error, model, self._timeout), "later" if unsent else "never"
        except ModelUnavailable as broken:
            return broken, "never"
        except TimeoutError:
            return silent(self._timeout), "never"
        found = decoded(content, model)
        if isinstance(found, ModelError) and found.status == 404 and self._completed():
            return found, "now"
        # A failure that the endpoint itself tells of is over; one that we cannot read may have been an answer.
        told = isinstance(found, ModelUnavailable) and found.status is not None
        return found, "later" if told else "never"

    def _completed(self) -> bool:
        """Whether an address without a path, at which nothing is found, was completed: most endpoints answer below /v1."""
        if urlsplit(self.base_url).path.strip("/"):
            return False
        self.base_url = self.base_url.rstrip("/") + "/v1"
        self._client.base_url = self.base_url
        log.warning("nothing is found at the address of the endpoint; trying it with /v1 (set model.base_url so)")
        return True

    def _wait(self, attempt: int, failure: ModelError) -> float:
        """Seconds before the next attempt: what the endpoint asked for, or a doubling pause, with jitter."""
        asked = failure.retry_after if isinstance(failure, ModelUnavailable) else None
        if asked is not None:
            return asked * (1 + 0.1 * self._chance())
        return 0.5 * 2.0 ** (attempt - 1) * (0.5 + self._chance())

    def _read(self, ask: "_Ask", body: Body, choice: Body) -> Reply:
        finish = str(choice.get("finish_reason") or "stop")
        message = mapping(choice.get("message"))
        text: str | None = text_of(message)
        if text:
            self._plain[ask.model] = self._plain.get(ask.model, True) and not thinks_aloud(str(message.get("content") or ""))
        names = frozenset(function.name for function in ask.functions)
        calls = stamped(native_calls(message, names), message, ask.model)
        unread = bool(text) and self._by_schema(ask)
        if text and unread:
            read = read_schema_reply(text)
            unread = read is None
            if read is not None:
                text, calls = read[0], (*calls, *read[1])
            elif finish == "length":
                text = ""  # half an object is nothing to show to a person
        if text:
            text, written = calls_in_text(text, names, _heard(ask.messages))
            calls = (*calls, *written)
        if text and unread and meant_as_schema_reply(text):
            text = ""  # nor is a broken one
        return Reply(
            text=text if text and text.strip() else None,
            calls=unique_ids(calls, ids_in(ask.messages)),
            finish=finish,
            usage=usage_of(body.get("usage")),
            model=clean(str(body.get("model") or ask.model))[:200],
        )


@dataclass(frozen=True, slots=True)
class _Ask:
    model: str
    messages: Sequence[ChatMessage]
    functions: tuple[FunctionSchema, ...]
    tool_choice: ToolChoice
    max_tokens: int
    temperature: float | None
    watch: Watch | None = None


def _heard(messages: Sequence[ChatMessage]) -> list[str]:
    """What people wrote and what functions brought."""
    return [str(message.get("content")) for message in messages if message.get("role") in ("user", "tool")]


_Send = Callable[[Callable[[], None]], Awaitable[bytes]]
"""Sends a request and returns the body of its answer; calls what it is given whenever a piece comes."""


async def _whole(call: Awaitable[Any]) -> bytes:
    return cast(bytes, (await call).http_response.content)
