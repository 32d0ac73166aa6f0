"""The rehearsal model over HTTP, through our own client and a memory of a few lines."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import aiohttp
import pytest

from bot import rehearsal
from bot.functions.context import PAUSED
from bot.model.calls import FunctionSchema, parse_arguments
from bot.model.client import ModelClient
from bot.model.errors import ModelRejected
from bot.model.replies import Reply


def schema(name: str, /, **properties: object) -> FunctionSchema:
    both = {"request_heartbeat": {"type": "boolean"}, "reason": {"type": "string"}}
    required = [key for key, kind in properties.items() if isinstance(kind, str)]
    kinds = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in properties.items()}
    return FunctionSchema(name, name, {"type": "object", "properties": {**kinds, **both}, "required": required})


PAGE: dict[str, object] = {"type": "integer", "default": 1}
TAGS: dict[str, object] = {"type": "array", "items": {"type": "string"}, "default": None}
FUNCTIONS = {
    one.name: one
    for one in (
        schema("working_context_append", section="string", content="string"),
        schema("working_context_replace", old="string", new="string"),
        schema("working_context_remove", content="string"),
        schema("recall_storage_search", query="string", page=PAGE),
        schema("archival_storage_insert", content="string", tags=TAGS),
        schema("archival_storage_search", query="string", page=PAGE),
        schema("send_message", text="string"),
        schema("stay_silent"),
        schema("set_timer", purpose="string", in_minutes="integer"),
        schema("list_timers"),
        schema("cancel_timer", timer="integer"),
    )
}


class Companion:
    """A bare loop of the design's kind: messages, working context, two searchable lists, two hits a page."""

    def __init__(self, client: ModelClient) -> None:
        self.client = client
        self.entries: dict[str, list[str]] = {}
        self.recall: list[str] = []
        self.archive: list[str] = []
        self.messages: list[dict[str, object]] = []
        self.made: list[str] = []
        self.paused = ""

    async def say(self, text: str) -> str:
        """The reply to a message; `made` holds the functions that were called on the way."""
        self.recall.append(text)
        return await self.event("user_message", text)

    async def event(self, kind: str, text: str) -> str:
        self.messages.append(
            {
                "role": "user",
                "content": json.dumps({"message": text} if kind == "user_message" else {"type": kind, "message": text}),
            }
        )
        self.made = []
        for _ in range(12):
            reply = await self.ask()
            if not self.run(reply):
                return reply.text or ""
        raise AssertionError("the turn never ended")

    async def ask(self, tool_choice: Literal["auto", "none", "required"] = "auto") -> Reply:
        sections = "".join(f"## {name}\n" + "".join(f"- {one}\n" for one in held) for name, held in self.entries.items())
        newest = max((n for n, one in enumerate(self.messages) if one["role"] == "user"), default=0)
        prompt: list[dict[str, object]] = [
            {"role": "system", "content": f"You remember.\n{sections}"},
            *self.messages[:newest],
            {"role": "user", "content": json.dumps({"type": "status", "time": "noon"})},
            *self.messages[newest:],
        ]
        return await self.client.complete("rehearsal", prompt, list(FUNCTIONS.values()), tool_choice=tool_choice, max_tokens=500)

    def run(self, reply: Reply) -> bool:
        calls = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}} for one in reply.calls
        ]
        if reply.text or calls:
            self.messages.append({"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})})
        goes_on = False
        for one in reply.calls:
            values = parse_arguments(one.arguments, FUNCTIONS[one.name])
            assert isinstance(values, dict), values
            result = self.function(one.name, values)
            self.made.append(one.name)
            self.messages.append({"role": "tool", "tool_call_id": one.id, "content": result})
            goes_on = goes_on or bool(values.get("request_heartbeat")) or result.startswith("Error")
        if calls and not goes_on:
            self.end(reply)
        return goes_on

    def end(self, reply: Reply) -> None:
        """What was said stands after the results; where nothing was said the calls are not shown any more."""
        begin = max(n for n, one in enumerate(self.messages) if one["role"] == "user") + 1
        spoken = [json.loads(one.arguments)["text"] for one in reply.calls if one.name == "send_message"]
        if said := "\n".join(spoken) or reply.text:
            for one in self.messages[begin:]:
                one["content"] = None if "tool_calls" in one else one["content"]
            self.messages.append({"role": "assistant", "content": said})
        else:
            del self.messages[begin:]

    def function(self, name: str, values: dict[str, Any]) -> str:
        match name:
            case "working_context_append" if self.paused:
                return self.paused
            case "working_context_append":
                held = self.entries.setdefault(values["section"], [])
                if values["content"] in held:
                    return "Error: That is there already. Nothing to do."
                held.append(values["content"])
            case "working_context_replace":
                self.change(values["old"], values["new"])
            case "working_context_remove":
                self.change(values["content"], None)
            case "archival_storage_insert":
                self.archive.append(values["content"])
            case "recall_storage_search":
                return self.search(self.recall, values)
            case "archival_storage_search":
                return self.search(self.archive, values)
            case "list_timers":
                return "1: Mon 2026-11-30 08:05: drink water"
        return "Done."

    def change(self, old: str, new: str | None) -> None:
        (section,) = [name for name, held in self.entries.items() if old in held]
        self.entries[section] = [new if one == old else one for one in self.entries[section] if one != old or new] if new else []

    def search(self, texts: list[str], values: dict[str, Any]) -> str:
        hits = [text for text in texts if any(word[:4].lower() in text.lower() for word in values["query"].split())]
        page = values.get("page", 1)
        shown = hits[(page - 1) * 2 : page * 2]
        lines = [json.dumps({"time": "Mon 2026-11-30 08:05", "from": "Ada", "text": text}) for text in shown]
        return f"Showing {len(shown)} of {len(hits)} results (page {page}/{-(-len(hits) // 2)}):\n" + "\n".join(lines)


@pytest.fixture(params=["native", "schema"])
async def companion(request: pytest.FixtureRequest) -> AsyncIterator[Companion]:
    async with rehearsal.serve() as base_url, ModelClient(base_url, "", calls=request.param, timeout=10) as client:
        yield Companion(client)


async def test_it_says_what_it_is_first_and_when_asked(companion: Companion) -> None:
    assert "rather than a language model" in await companion.say("Hello!")
    assert "language model" not in await companion.say("I like tea.")
    assert "rather than a language model" in await companion.say("Are you a language model?")


async def test_a_pause_is_told_to_the_person_and_not_as_to_a_model(companion: Companion) -> None:
    await companion.say("Hello!")
    companion.paused = f"Error: {PAUSED}"
    said = await companion.say("I like tea.")
    assert "Memory is paused" in said
    assert "Do not try again" not in said


async def test_a_fact_is_kept_corrected_and_forgotten(companion: Companion) -> None:
    assert "I will remember: Name: Ada; Likes: tea." in await companion.say("My name is Ada. I like tea.")
    assert companion.entries == {"profile": ["Name: Ada"], "preferences": ["Likes: tea"]}
    companion.messages.clear()
    assert "Name: Ada" in await companion.say("What is my name?")
    assert companion.made == []
    assert await companion.say("Actually my name is Bea") == "Corrected: Name: Bea."
    assert companion.entries["profile"] == ["Name: Bea"]
    assert await companion.say("not tea but cocoa") == "Corrected: Likes: cocoa."
    assert await companion.say("Forget that I like cocoa") == "Forgotten: Likes: cocoa."
    assert companion.entries["preferences"] == []
    assert "nothing to change" in await companion.say("Forget my shoe size")


async def test_a_refused_duplicate_ends_with_a_word(companion: Companion) -> None:
    await companion.say("I like tea")
    assert await companion.say("I like tea") == "I have that already: Likes: tea."


async def test_a_question_pages_until_the_answer_is_found(companion: Companion) -> None:
    companion.recall = [f"The dog barked {number} times" for number in range(5)] + ["The name of my dog is Biscuit"]
    reply = await companion.say("What is the name of my dog?")
    assert "Biscuit" in reply
    assert "2026-11-30" in reply
    assert companion.made == ["recall_storage_search"] * 3


async def test_what_recall_does_not_hold_is_looked_for_in_archival_storage(companion: Companion) -> None:
    await companion.say("note: the wifi password of the cabin is walrus-77")
    assert companion.archive == ["the wifi password of the cabin is walrus-77"]
    companion.messages.clear()
    companion.recall.clear()
    assert "walrus-77" in await companion.say("What is the wifi password of the cabin?")
    assert companion.made == ["recall_storage_search", "archival_storage_search"]


async def test_the_search_ends_at_four_pages_with_a_plain_word(companion: Companion) -> None:
    companion.recall = [f"The dog barked {number} times" for number in range(40)]
    await companion.say("What does a dog weigh in kilograms on Mars?")
    assert companion.made == ["recall_storage_search"] * 4 + ["archival_storage_search"]
    assert "do not know" in await companion.say("What is xylem?")


async def test_it_pages_on_when_told(companion: Companion) -> None:
    companion.recall = [f"The dog {number} is brown" for number in range(7)]
    await companion.say("Which dog is brown?")
    assert (await companion.say("next page")).startswith("You told me") or "Page 2 of 4" in companion.messages[-1]["content"]  # type: ignore[operator]
    assert companion.made == ["recall_storage_search"]


async def test_memory_pressure_saves_and_says_nothing(companion: Companion) -> None:
    await companion.say("My name is Ada.")
    await companion.say("The train to Graz leaves at 7 on Monday.")
    assert await companion.event("alert", "Memory pressure: save what matters.") == ""
    assert companion.made == ["archival_storage_insert"]
    assert "The train to Graz leaves at 7" in companion.archive[0]


async def test_memory_pressure_does_not_swallow_the_message(companion: Companion) -> None:
    await companion.say("My name is Ada, and my cat weighs 4 kilos.")
    companion.messages.append({"role": "user", "content": json.dumps({"message": "What is my name?"})})
    assert "Name: Ada" in await companion.event("alert", "Memory pressure: save what matters.")
    assert companion.made == ["archival_storage_insert"]


async def test_timers_are_set_listed_and_speak(companion: Companion) -> None:
    assert "drink water" in await companion.say("Remind me in 10 minutes to drink water")
    assert companion.made == ["set_timer"]
    assert "drink water" in await companion.say("Which timers are there?")
    await companion.event("timer", "drink water")
    assert companion.made == ["send_message"]
    await companion.event("join", "Ada came in")
    assert companion.made == ["stay_silent"]


async def test_without_functions_it_answers_in_text(companion: Companion) -> None:
    companion.messages.append({"role": "user", "content": json.dumps({"message": "I like tea. What is xylem?"})})
    reply = await companion.ask("none")
    assert reply.text
    assert reply.calls == ()
    assert reply.usage.prompt_tokens > 0
    required = await companion.ask("required")
    assert required.calls


async def test_a_function_that_is_named_is_called() -> None:
    ping = FunctionSchema("ping", "", {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]})
    async with rehearsal.serve() as base_url, ModelClient(base_url, "key") as client:
        reply = await client.complete(
            "m", [{"role": "user", "content": "Call the function ping with value 7."}], [ping], max_tokens=50
        )
        assert [(one.name, json.loads(one.arguments)) for one in reply.calls] == [("ping", {"value": 7})]


@pytest.mark.parametrize("calls", ["native", "schema"])
async def test_a_key_is_followed_to_its_value(calls: Literal["native", "schema"]) -> None:
    look_up = FunctionSchema("look_up", "", {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]})
    stored = {"amber": "another key: birch", "birch": "the number 4711"}
    messages: list[dict[str, object]] = [{"role": "user", "content": "Which number is stored under the key amber?"}]
    async with rehearsal.serve() as base_url, ModelClient(base_url, "", calls=calls) as client:
        for key in stored:
            reply = await client.complete("m", messages, [look_up], max_tokens=50)
            (made,) = reply.calls
            assert json.loads(made.arguments) == {"key": key}
            wire = {"id": made.id, "type": "function", "function": {"name": made.name, "arguments": made.arguments}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [wire]})
            messages.append({"role": "tool", "tool_call_id": made.id, "content": stored[key]})
        assert "4711" in ((await client.complete("m", messages, [look_up], max_tokens=50)).text or "")


async def test_it_summarises_within_the_words() -> None:
    lines = [json.dumps({"type": "message", "said_by": "Ada", "text": text}) for text in ("My cat is called Momo.", "Hm.")]
    said = json.dumps({"type": "message", "said_by": "you", "text": "I am a rehearsal."})
    request = [
        {"role": "system", "content": "You keep the running summary, at most 12 words."},
        {
            "role": "user",
            "content": "\n".join(["Summary so far:", "Ada lives in Porto.", "", "Messages that leave:", *lines, said]),
        },
    ]
    async with rehearsal.serve() as base_url, ModelClient(base_url, "key") as client:
        reply = await client.complete("m", request, max_tokens=100)
    assert reply.text == "Ada lives in Porto. My cat is called Momo."


async def test_bad_requests_and_embeddings_are_refused_clearly() -> None:
    async with rehearsal.serve() as base_url, ModelClient(base_url, "key") as client, aiohttp.ClientSession() as http:
        with pytest.raises(ModelRejected, match="404"):
            await client.embed("m", ["x"])
        assert await client.models() == ["rehearsal"]
        for body in (b"{", b"[]", b'{"messages": 1}', b'{"response_format": {"json_schema": 1}}'):
            async with http.post(f"{base_url}/chat/completions", data=body) as response:
                assert response.status == 400
                assert "rehearsal" in (await response.json())["error"]["message"]


async def test_the_same_request_gets_the_same_answer_and_many_run_at_once() -> None:
    async with rehearsal.serve() as base_url, ModelClient(base_url, "key") as client:
        messages = [{"role": "user", "content": "I like tea"}]
        tools = list(FUNCTIONS.values())
        replies = await asyncio.gather(*(client.complete("m", messages, tools, max_tokens=50) for _ in range(20)))
        client.streams = False
        replies.append(await client.complete("m", messages, tools, max_tokens=50))
    assert len({(reply.text, reply.calls, reply.usage) for reply in replies}) == 1


async def test_two_run_side_by_side_and_a_taken_port_is_refused() -> None:
    async with rehearsal.serve() as one, rehearsal.serve() as other:
        assert one != other
        with pytest.raises(OSError, match="in use"):
            async with rehearsal.serve(int(one.split(":")[2].split("/")[0])):
                pass
