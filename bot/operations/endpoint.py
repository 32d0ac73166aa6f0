"""The model's endpoint as the operator sees it: a quick look at it when the bot starts, and what to do about each of its faults."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

from bot.config.loading import Loaded
from bot.model.client import ModelClient
from bot.model.errors import ModelError, ModelRejected, ModelUnavailable, not_for_chats

PATIENCE = 5.0
"""Seconds that the look at the start may take; an endpoint that is slower is not found fault with."""

TOKENS = 16
"""Tokens of an answer that nobody reads; fewer are refused by some endpoints."""


def address(url: str) -> str:
    """An address without credentials and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def what_to_do(error: ModelError, loaded: Loaded) -> str:
    """The remedy for a fault of the configured endpoint, one sentence that names what to change."""
    key, at = loaded.config.model.api_key_env, address(loaded.model_url)
    if isinstance(error, ModelUnavailable) and error.unreadable:
        return f"Correct model.base_url ({at}; most end in /v1): what answers there is no model."
    if error.status == 401:
        if key:
            return f"Put a key that {at} takes into the environment variable {key}."
        return "The endpoint wants a key: put it into an environment variable, and name that in model.api_key_env."
    if error.status == 403:
        whose = f"the key in {key}" if key else "requests without a key (model.api_key_env is empty)"
        return f"At {at}, allow {loaded.config.model.chat} to {whose}, or name another key or model.chat."
    if error.status == 404 and "/v1/responses" in str(error):
        return f"The address ({at}) is right."
    if error.status == 404:
        return f"Correct model.base_url ({at}; most end in /v1) or model.chat ({loaded.config.model.chat})."
    if error.status is not None and error.status >= 500:
        return f"The fault is at {at}, not in the configuration: look at its log, or try again later."
    if unreached(error):
        return f"Start the endpoint at {at}, or correct model.base_url."
    return "Check model.base_url, model.chat and the key that model.api_key_env names."


def unreached(error: ModelError) -> bool:
    """Whether no connection came about."""
    return isinstance(error, ModelUnavailable) and error.unreached


async def fault(loaded: Loaded) -> str | None:
    """A line about an endpoint that does not answer as one, or not with this model; None where nothing is wrong or it is only slow.

    The model is asked for a word where the list of models does not have it, or its name says that it may not chat.
    """
    name = loaded.config.model.chat
    try:
        async with (
            asyncio.timeout(PATIENCE),
            ModelClient(loaded.model_url, loaded.key or "", timeout=PATIENCE, attempts=1) as client,
        ):
            if not await _listed(client, name) or not_for_chats(name):
                await client.complete(name, [{"role": "user", "content": "Say hello in one word."}], max_tokens=TOKENS)
            if client.base_url != loaded.model_url:
                return f"model.base_url: nothing is found at {address(loaded.model_url)}; {address(client.base_url)} is used. Set it so."
    except TimeoutError:
        return None
    except ModelError as error:
        unreadable = isinstance(error, ModelUnavailable) and error.unreadable
        if isinstance(error, ModelRejected) or unreached(error) or unreadable:
            return f"The model does not answer: {error}. {what_to_do(error, loaded)} `bot doctor` tells more."
    return None


async def _listed(client: ModelClient, name: str) -> bool:
    """Whether the endpoint's list has the model. Raises a ModelError where the list tells of a fault that every request will meet."""
    try:
        return name in await client.models()
    except ModelError as error:
        if error.status in (401, 403) or unreached(error):
            raise
        return False  # it may have no list


@asynccontextmanager
async def looked_at(loaded: Loaded, say: Callable[[str], None]) -> AsyncIterator[None]:
    """While the context is open, look once at the endpoint and say what is wrong with it; the start does not wait for it."""

    async def look() -> None:
        if found := await fault(loaded):
            say(found)

    if loaded.rehearsal:
        yield
        return
    task = asyncio.create_task(look(), name="look at the endpoint")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
