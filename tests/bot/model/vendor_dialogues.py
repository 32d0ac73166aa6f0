"""Twelve dialogues with the real agent, recorded where the agent hands them to the model's client."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from adapters.base import Person, PlaceOf
from bot.engine.events import TryAgainLater
from bot.model.calls import FunctionSchema
from bot.model.client import ModelClient
from bot.model.messages import ToolChoice
from bot.model.processor import Endpoint
from bot.model.replies import Reply
from memory.db import Database
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue
from tests.servers.model import Answer, Request, Status, Step, call, reply


@dataclass(frozen=True)
class Asked:
    """What the client was asked for."""

    messages: list[dict[str, Any]]
    functions: tuple[FunctionSchema, ...]
    tool_choice: ToolChoice
    max_tokens: int


class Recording(ModelClient):
    """A client that writes down what it is asked for."""

    asked: list[Asked]

    async def complete(
        self, model: str, messages: Sequence[Mapping[str, object]], functions: Sequence[FunctionSchema] = (), **options: Any
    ) -> Reply:
        kept = Asked(
            deepcopy([dict(m) for m in messages]), tuple(functions), options.get("tool_choice", "auto"), options["max_tokens"]
        )
        self.asked.append(kept)
        return await super().complete(model, messages, functions, **options)


async def greeting(d: Dialogue) -> None:
    d.model.add(reply("Hello."), reply("Fine."))
    await d.hear("Hello")
    await d.hear("How are you?")


async def fact(d: Dialogue) -> None:
    d.model.add(reply("Noted.", call("working_context_append", section="key_facts", content="Ada has a cat.")), reply("Nice."))
    await d.hear("I have a cat.")
    await d.hear("It is black.")


async def search(d: Dialogue) -> None:
    d.model.add(reply("Let me look.", call("recall_storage_search", query="cat")), reply("Nothing."), reply("Good night."))
    await d.hear("What did I say of my cat?")
    await d.hear("Good night.")


async def chain(d: Dialogue) -> None:
    d.model.add(
        reply(None, call("recall_storage_search", query="cat")),
        reply("Perhaps in the archive.", call("archival_storage_search", query="cat")),
        reply(None, call("list_timers")),
        reply("I have nothing."),
        reply("Bye."),
    )
    await d.hear("Look everywhere.")
    await d.hear("Bye.")


async def paging(d: Dialogue) -> None:
    d.model.add(*(reply(f"I see {n}.") for n in range(12)))
    for n in range(12):
        await d.hear(f"Pear number {n}")
    pages = [reply(None, call("recall_storage_search", query="pear", page=page)) for page in (1, 2)]
    d.model.add(*pages, reply("Twelve."), reply("Yes."))
    await d.hear("How many pears?")
    await d.hear("Sure?")


async def parallel(d: Dialogue) -> None:
    made = (
        call("recall_storage_search", query="tea"),
        call("working_context_append", section="goals", content="Ada wants tea."),
        call("send_message", text="One moment."),
    )
    d.model.add(reply("Both at once.", *made), reply("Thought to myself."), reply("Hello again."))
    await d.hear("Tea?")
    await d.hear("Hello?")


async def pressure(d: Dialogue) -> None:
    def policy(request: Request) -> Step:
        if "tools" not in request.body:
            return reply("They spoke of much.")
        return (
            reply("ok", call("archival_storage_insert", content="Much was said."))
            if "Memory pressure" in request.last
            else reply("ok")
        )

    d.model._policy = policy
    d.settings, d.made = replace(SETTINGS, budget=5_000, reply_reserve=500), None
    for n in range(30):
        await d.hear(f"Entry number {n}: " + "a long story of the sea and of ships, " * 12)
        if any(not asked.functions for asked in d.client.asked[-3:]):  # type: ignore[attr-defined]
            break
    else:
        raise AssertionError("never flushed")
    await d.hear("And so on.")
    d.model._policy = None


async def picture(d: Dialogue) -> None:
    agent = await d.accept("Look at this.")
    images = [{"name": "cat.png", "url": "data:image/png;base64,AAAA"}]
    statement = "UPDATE events SET payload = payload || %s::jsonb WHERE id = (SELECT max(id) FROM events) RETURNING id"
    await d.rows(statement, (json.dumps({"images": images}),))
    save = reply(None, call("working_context_append", section="goals", content="x", request_heartbeat=True))
    d.model.add(save, reply("A cat."), reply("Yes."))
    await d.agent.turn(await d.claim(agent))
    await d.hear("Is it?")


async def stream(d: Dialogue) -> None:
    """As told; it is streamed where it is replayed."""
    d.model.add(reply(None, call("recall_storage_search", query="sea")), reply("The sea is calm."), reply("Yes."))
    await d.hear("How is the sea?")
    await d.hear("Really?")


async def refusal(d: Dialogue) -> None:
    d.model.add(Answer(message={"content": None, "refusal": "I cannot help with that."}), reply("That I can."))
    await d.hear("Help me with that.")
    await d.hear("And with this?")


async def outage(d: Dialogue) -> None:
    d.model.add(reply(None, call("recall_storage_search", query="x")), Status(503))
    agent = await d.accept("Are you there?")
    try:
        await d.run(await d.claim(agent))
        raise AssertionError("the turn was not put off")
    except TryAgainLater:
        pass
    d.model.add(reply("Back again."), reply("Hello."))
    await d.agent.turn(await d.claim(agent))
    await d.hear("Hello")


async def change(d: Dialogue) -> None:
    """The first model's call is answered by another one, within the turn and from then on."""
    made = {
        "id": "functions.recall_storage_search:0",
        "type": "function",
        "function": {"name": "recall_storage_search", "arguments": '{"query": "x"}'},
        "extra_content": {"google": {"thought_signature": "secret"}},
    }
    d.model.add(Answer(message={"content": None, "reasoning_content": "My own thought.", "tool_calls": [made]}), Status(503))
    d.fallbacks = (Endpoint(d.client, "another-model"),)
    d.model.add(reply(None, call("archival_storage_search", query="x")), reply("Found by another."), reply("Hello."))
    await d.hear("Find x.")
    await d.hear("Hello")


DIALOGUES: Mapping[str, Callable[[Dialogue], Awaitable[None]]] = {
    "greeting": greeting,
    "fact": fact,
    "search": search,
    "chain of three": chain,
    "paging": paging,
    "parallel calls": parallel,
    "pressure and flush": pressure,
    "picture": picture,
    "stream": stream,
    "refusal": refusal,
    "outage": outage,
    "change of vendor": change,
}


async def recorded(db: Database) -> dict[str, list[Asked]]:
    """All dialogues, each of a person of its own; what the client was asked for in each."""
    found = {}
    async with dialogue(db) as d:
        for number, (name, play) in enumerate(DIALOGUES.items()):
            user = f"p{number}"
            async with Recording(d.model.base_url, "key", attempts=1) as client:
                client.asked = []
                own = replace(
                    d,
                    client=client,
                    made=None,
                    person=Person("console", "", user, "Ada"),
                    place=PlaceOf("console", "", "", user, "direct"),
                )
                await play(own)
                found[name] = client.asked
    return found
