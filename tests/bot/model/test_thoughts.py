"""Thoughts in the text of an answer, in every format that is known, whole and streamed in pieces that tear anything."""

from __future__ import annotations

import pytest

from bot.model.client import ModelClient
from bot.model.thoughts import spoken, spoken_so_far
from tests.servers.model import ScriptedModel, Status, reply

SECRET = "She sounds sad.\nI will be kind."
FORMATS = {
    "DeepSeek, Qwen": f"<think>\n{SECRET}\n</think>\n\nHello.",
    "opened in the prompt": f"{SECRET}\n</think>\n\nHello.",
    "opened in the prompt, on one line": "She sounds sad.</think>Hello.",
    "Magistral": f"[THINK]{SECRET}[/THINK]Hello.",
    "Magistral, opened in the prompt": f"{SECRET}[/THINK]Hello.",
    "EXAONE, Gemini": f"<thought>\n{SECRET}\n</thought>\nHello.",
    "Seed": f"<seed:think>{SECRET}</seed:think>Hello.",
    "Kimi": f"◁think▷{SECRET}◁/think▷Hello.",
    "Command": f"<|START_THINKING|>{SECRET}<|END_THINKING|>Hello.<|END_RESPONSE|>",
    "MedGemma": f"<unused94>thought\n{SECRET}<unused95>Hello.",
    "harmony": f"<|channel|>analysis<|message|>{SECRET}<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
    "harmony, header in the prompt": f"{SECRET}<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
    "harmony without its tokens": f"analysis{SECRET}assistantfinalHello.",
    "two thoughts": f"<think>{SECRET}</think>\n<think>{SECRET}</think>\nHello.",
    "a thought after the words": f"Hello.\n<think>\n{SECRET}\n</think>",
}
UNFINISHED = [f"<think>{SECRET}", f"[THINK]{SECRET}", f"<thought>{SECRET}", f"<|channel|>analysis<|message|>{SECRET}"]
ORDINARY = [
    "A model writes <think> before its thoughts and </think> after them.",
    "The tag </think> closes a thought.",
    "Close it with `</think>` and go on.",
    "<think> and </think> are tags.",
    "Put [THINK] in front; [/THINK] ends it.",
    "Write it so:\n```\n<think>\nhm\n</think>\n```\nThat is all.",
    "gpt-oss writes `<|channel|>analysis<|message|>` before a thought.",
    "I <thought> about it.",
    "My analysis says that the assistant finally won.",
]


@pytest.mark.parametrize("text", FORMATS.values(), ids=FORMATS.keys())
async def test_a_thought_is_never_said(text: str) -> None:
    """Streamed and whole, from a server that tears tags."""
    whole = [Status(400, None, "unknown parameter: stream"), reply(text)]
    async with (
        ScriptedModel([reply(text), *whole]) as model,
        ModelClient(model.base_url, "") as streamed,
        ModelClient(model.base_url, "") as plain,
    ):
        for client in (streamed, plain):
            answer = await client.complete("m", [{"role": "user", "content": "Hi"}], max_tokens=100)
            assert answer.text is not None
            assert answer.text.strip() == "Hello."


MARKED = [text for text in FORMATS.values() if not text.startswith(("She", SECRET))]
"""Of the others the end alone is known, so a model that writes so is not shown before it was heard (`Partial.plain`)."""


@pytest.mark.parametrize("text", [*MARKED, *UNFINISHED])
def test_nothing_of_a_thought_shows_while_it_is_written(text: str) -> None:
    for end in range(len(text) + 1):
        assert "Hello.".startswith(spoken_so_far(text[:end]).strip()), f"{text[:end]!r}"


@pytest.mark.parametrize("text", UNFINISHED)
def test_a_thought_that_never_ends_says_nothing(text: str) -> None:
    assert spoken(text) == ""


@pytest.mark.parametrize("text", ORDINARY)
def test_who_speaks_about_a_tag_loses_nothing(text: str) -> None:
    assert spoken(text) == text
