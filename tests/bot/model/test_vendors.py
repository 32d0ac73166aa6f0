"""One request shape for all: twelve dialogues before every vendor's rules, and what each gives goes back to it."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.base import Person, PlaceOf
from bot.functions import SCHEMAS
from bot.model.client import ModelClient
from bot.model.errors import ModelError
from bot.model.messages import repair
from memory import queue_manager
from memory.db import Database
from tests.bot.dialogue import Dialogue, dialogue, seen
from tests.bot.model.vendor_dialogues import Asked, recorded
from tests.servers.model import Request, ScriptedModel, Step, call, reply
from tests.servers.vendors import ALL, Vendor
from tests.servers.vendors.hosted import THOUGHT, Groq, OpenAIChat
from tests.servers.vendors.rules import Rule

PAGE = Path(__file__).parents[3] / "docs" / "models.md"
FACTS = [f"Ada's fact number {number}." for number in range(10)]


def given_by(vendor: Vendor, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as if the vendor's own model had made the calls."""
    made = deepcopy(messages)
    for message in made:
        for number, one in enumerate(message.get("tool_calls") or ()):
            given = vendor.given(number)
            one |= {"vendor": {"model": vendor.model, **given}} if given else {}
    return made


async def replayed(vendor: Vendor, name: str, asked: list[Asked], client: ModelClient) -> bool:
    """Whether a vendor takes every request of a dialogue; what a client finds out by itself is no refusal."""
    before = len(vendor.refused)
    for one in asked:
        messages = one.messages if name == "change of vendor" else given_by(vendor, one.messages)
        watch = (lambda _: None) if name == "stream" else None
        try:
            await client.complete(
                vendor.model,
                messages,
                one.functions,
                tool_choice=one.tool_choice,
                max_tokens=one.max_tokens,
                temperature=0.7,
                watch=watch,
            )
        except ModelError:
            return False
    return len(vendor.refused) == before


async def test_every_vendor_takes_every_request_of_the_twelve_dialogues(db: Database) -> None:
    dialogues = await recorded(db)
    assert len(dialogues) == 12
    lines = ["| endpoint | dialogues | what the bot finds out there by itself |", "|---|---|---|"]
    failed = []
    for vendor in (type(one)() for one in ALL):
        taken = []
        async with (
            ScriptedModel(policy=lambda _: reply("ok"), habits=vendor) as server,
            ModelClient(server.base_url, "key", calls="auto", attempts=1) as client,
        ):
            for name, asked in dialogues.items():
                taken.append(await replayed(vendor, name, asked, client))
                failed += [] if taken[-1] else [(vendor.name, name, vendor.refused[-1:] or server.refused[-1:])]
        lines.append(f"| {vendor.name} | {sum(taken)} of {len(taken)} | {'; '.join(vendor.learned) or 'nothing'} |")
    assert failed == []
    assert "\n".join(lines) in PAGE.read_text(encoding="utf-8"), "docs/models.md says:\n" + "\n".join(lines)


def good_request(vendor: Vendor) -> dict[str, Any]:
    """A request that the vendor takes: a call in an exchange that is over, and one in the running turn."""
    made = [
        {"role": "system", "content": "You remember."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "A moment.", "tool_calls": [_wire(vendor, "Aaaaaaaa1")]},
        {"role": "tool", "tool_call_id": "Aaaaaaaa1", "content": "none"},
        {"role": "assistant", "content": "Nothing."},
        {"role": "user", "content": "And now?"},
    ]
    learned = {rule.name for rule in vendor.rules if rule.learned}
    if "no system role" in learned:
        del made[0]
    if any("JSON schema" in name for name in learned):
        made = [{k: v for k, v in one.items() if k != "tool_calls"} for one in made if one["role"] != "tool"]
        made = [one for one in made if one["content"] != "A moment."]
        return {"model": vendor.model, "messages": made}
    for message in made:
        if message.get("tool_calls"):
            message |= {k: v for k, v in vendor.given(0).items() if k != "extra_content"}
    return {"model": vendor.model, "messages": made, "tools": [schema.as_tool() for schema in SCHEMAS]}


def _wire(vendor: Vendor, call_id: str) -> dict[str, Any]:
    signed = {k: v for k, v in vendor.given(0).items() if k == "extra_content"}
    return {"id": call_id, "type": "function", "function": {"name": "list_timers", "arguments": "{}"}, **signed}


RULES = [(vendor, rule) for vendor in ALL for rule in vendor.rules]


@pytest.mark.parametrize(("vendor", "rule"), RULES, ids=[f"{vendor.name}: {rule.name}" for vendor, rule in RULES])
def test_every_rule_refuses_what_breaks_it(vendor: Vendor, rule: Rule) -> None:
    good = good_request(vendor)
    assert type(vendor)().refusal(good) is None
    refusal = type(vendor)().refusal(rule.broken(good))
    assert refusal is not None
    assert refusal.status in (400, 500)


GIVING = [vendor for vendor in ALL if vendor.given(0)]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("vendor", GIVING, ids=[vendor.name for vendor in GIVING])
async def test_what_a_vendor_gives_goes_back_to_it_and_to_no_other(vendor: Vendor, streams: bool) -> None:
    vendor = type(vendor)()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Timers?"}]
    async with ScriptedModel([reply(None, call("list_timers")), reply("None.")], habits=vendor) as server:
        async with ModelClient(server.base_url, "key", attempts=1) as client:
            watch = (lambda _: None) if streams else None
            first = await client.complete(vendor.model, messages, SCHEMAS, max_tokens=99, watch=watch)
            calls = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in first.calls
            ]
            calls[0]["vendor"] = first.calls[0].vendor
            messages += [{"role": "assistant", "content": None, "tool_calls": calls}]
            messages += [{"role": "tool", "tool_call_id": calls[0]["id"], "content": "none"}]
            await client.complete(vendor.model, messages, SCHEMAS, max_tokens=99, watch=watch)
        assert vendor.refused == server.refused == []
        sent: Any = server.requests[-1].messages[1]
        assert vendor.given(0) == {k: v for k, v in {**sent, **sent["tool_calls"][0]}.items() if k in vendor.given(0)}
        for other in (Groq(), OpenAIChat()):
            assert other.refusal({"messages": repair(messages)}) is None
            assert THOUGHT not in json.dumps(repair(messages))


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("vendor", ALL, ids=[vendor.name for vendor in ALL])
async def test_what_an_answer_costs_is_known_of_every_vendor(vendor: Vendor, streams: bool) -> None:
    """Budgets count it, and the size of later prompts is learned from it."""
    costs = reply("Hello.", prompt_tokens=1234, completion_tokens=56)
    async with (
        ScriptedModel([costs], habits=type(vendor)()) as server,
        ModelClient(server.base_url, "key", attempts=1, streams=streams) as client,
    ):
        answer = await client.complete(vendor.model, [{"role": "user", "content": "Hi"}], max_tokens=99)
    assert (answer.text, answer.usage.prompt_tokens, answer.usage.completion_tokens) == ("Hello.", 1234, 56)


async def test_an_endpoint_that_refuses_its_own_thoughts_gets_them_once() -> None:
    """Some give `reasoning_content` and call it unknown when it comes back."""

    class Odd(Groq):
        def think(self, message: dict[str, Any]) -> None:
            message["reasoning_content"] = THOUGHT

    given: list[dict[str, Any]] = [{"role": "assistant", "content": None, "tool_calls": [{**_wire(Groq(), "Aaaaaaaa1")}]}]
    given[0]["tool_calls"][0]["vendor"] = {"model": "m", "reasoning_content": THOUGHT}
    vendor = Odd()
    async with (
        ScriptedModel([reply("One."), reply("Two.")], habits=vendor) as server,
        ModelClient(server.base_url, "key", attempts=1) as client,
    ):
        for _ in range(2):
            await client.complete("m", [{"role": "user", "content": "hi"}, *given], SCHEMAS, max_tokens=9)
    assert len(vendor.refused) == 1


async def test_thoughts_are_kept_with_the_call_as_long_as_it_is_in_the_queue(db: Database) -> None:
    vendor = next(type(one)() for one in ALL if one.name == "DeepSeek")
    script = [reply(None, call("recall_storage_search", query="x")), reply("Nothing."), reply("Hello.")]
    async with dialogue(db, *script, habits=vendor) as d:
        await d.hear("Find x.")
        await d.hear("Hello")
        sent = [m.get("reasoning_content") for m in d.model.requests[-1].messages if m.get("tool_calls")]
        assert sent == [THOUGHT], "also in the next turn"
        [row] = await d.rows(
            "SELECT a.id, c.id AS conversation, c.place_id FROM agents a JOIN conversations c ON c.agent_id = a.id"
        )
        agent, conversation, place = (int(str(row[name])) for name in ("id", "conversation", "place_id"))
        async with db.agent(agent, everything=True) as connection:
            await queue_manager.fresh(connection, conversation, agent=agent, place=place, at=d.at)
        [kept] = await d.rows("SELECT calls FROM messages WHERE calls IS NOT NULL")
        assert THOUGHT not in json.dumps(kept["calls"])
        assert "recall_storage_search" in json.dumps(kept["calls"]), "the call itself stays"


def teller(request: Request) -> Step:
    """Stores the facts it is told, looks up one thing first, and says which facts it sees."""
    by_schema = "response_format" in request.body
    asked, shown = request.last.splitlines()[-1], seen(request)
    made: tuple[Any, ...] = ()
    text: str | None = "Noted."
    found = request.messages[-1]["role"] == "tool" or "function_result" in asked
    if "What do you know" in asked and not found:
        text, made = "Let me look.", (call("recall_storage_search", query="fact"),)
    elif "What do you know" in shown and found:
        text = " ".join(fact for fact in FACTS if fact in json.dumps(request.messages[0], ensure_ascii=False))
    else:
        made = tuple(call("working_context_append", section="key_facts", content=fact) for fact in FACTS if fact in asked)
    if not by_schema:
        return reply(text, *made)
    calls = [{"function": one.name, "arguments": json.loads(one.arguments)} for one in made]
    return reply(json.dumps({"text": text, "calls": calls}))


async def test_ten_facts_are_known_in_a_new_conversation_at_every_vendor(db: Database) -> None:
    async with dialogue(db) as d:
        for number, vendor in enumerate(type(one)() for one in ALL):
            user = f"v{number}"
            async with (
                ScriptedModel(policy=teller, habits=vendor) as server,
                ModelClient(server.base_url, "key", calls="auto", attempts=1) as client,
            ):
                own: Dialogue = replace(
                    d,
                    model=server,
                    client=client,
                    made=None,
                    settings=replace(d.settings, chat_model=vendor.model),
                    person=Person("console", "", user, "Ada"),
                    place=PlaceOf("console", "", "", user, "direct"),
                )
                assert await own.hear(" ".join(FACTS[:5])) == ["Noted."]
                assert await own.hear(" ".join(FACTS[5:])) == ["Noted."]
                [agent] = await own.rows("SELECT id FROM agents")
                async with db.agent(int(str(agent["id"])), everything=True) as connection:
                    [row] = await (await connection.execute("SELECT id, place_id FROM conversations")).fetchall()
                    await queue_manager.fresh(
                        connection, row["id"], agent=int(str(agent["id"])), place=row["place_id"], at=own.at
                    )
                assert await own.hear("What do you know about me?") == [" ".join(FACTS)], vendor.name
                assert vendor.refused == [], vendor.name
