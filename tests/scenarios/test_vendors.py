"""One real process a vendor: a fact is told in a chat and looked up in the next one, before the rules of each vendor's own endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.folders import data_folder
from tests.scenarios.terminal import run
from tests.servers.model import Request, ScriptedModel, Step, call, reply
from tests.servers.vendors import ALL, Vendor

ASKED = "What did I call my cat?"
SAMPLE = ("Gemini", "OpenAI o-series", "llama.cpp, Ministral")
"""The strictest of each kind; `make soak` runs all."""


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """One data folder for all; each vendor talks with a person of its own."""
    with data_folder("vendors") as data:
        yield data


def companion(request: Request) -> Step:
    """Stores the cat's name; where it is asked for, looks it up and says what was found. Calls in whatever way it is asked to."""
    newest = str(request.messages[-1].get("content"))
    found = request.messages[-1]["role"] == "tool" or "function_result" in newest
    if found:
        text, calls = ("Pixel!" if "cat is called Pixel" in newest else "It is not there."), []
    elif ASKED in newest:
        text, calls = "", [call("recall_storage_search", query="my cat is called")]
    else:
        text, calls = "Noted.", [call("working_context_append", content="The cat is called Pixel.")]
    if "response_format" not in request.body:
        return reply(text or None, *calls)
    made = [{"function": each.name, "arguments": json.loads(each.arguments)} for each in calls]
    return reply(json.dumps({"calls": made, "text": text}))


@pytest.mark.parametrize(
    "vendor", [pytest.param(each, id=each.name, marks=[] if each.name in SAMPLE else [pytest.mark.full]) for each in ALL]
)
async def test_a_real_process_remembers_at_every_vendor(data: Path, vendor: Vendor) -> None:
    habits = type(vendor)()
    given = f"My cat is called Pixel.\n/fresh\n{ASKED}\n/memory view\n"
    async with ScriptedModel(policy=companion, habits=habits) as model:
        chosen = {
            "KEEPSAKE__MODEL__BASE_URL": model.base_url,
            "KEEPSAKE__MODEL__CHAT": vendor.model,
            "KEEPSAKE__MODEL__SIZE": "large",
        }
        code, out, err = await run(data, "chat", user=f"p{ALL.index(vendor)}", given=given, patience=400, **chosen)
    assert code == 0, err
    noted, _, answered = out.partition("fresh conversation")
    assert noted.startswith("Noted.\n"), out
    assert "\nPixel!\n" in answered, out
    assert "The cat is called Pixel." in answered, out
    # What is to be found out there the look at the start and the bot itself each find out once; nothing else is refused.
    assert len(habits.refused) <= len(habits.learned), habits.refused
