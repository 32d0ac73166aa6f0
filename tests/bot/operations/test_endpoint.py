"""What is said at the start about an endpoint that will not answer: one line with what to change, never silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config.loading import Loaded, load
from bot.operations.endpoint import fault
from tests.servers.model import Raw, ScriptedModel, Status, Step, reply

RESPONSES = Status(404, None, "This model is only supported in v1/responses and not in v1/chat/completions.")
PAGE = Raw("<html><title>Open WebUI</title></html>", "text/html")


def configured(folder: Path, url: str, chat: str) -> Loaded:
    file = folder / "config.yaml"
    file.write_text(f"model:\n  base_url: {url}\n  chat: {chat}\n")
    return load(file)


@pytest.mark.parametrize(
    ("chat", "answer", "told"),
    [
        (
            "gpt-5-pro",
            RESPONSES,
            "answers in /v1/responses alone, which is not spoken here (status 404, scripted): set model.chat to gpt-5. The address",
        ),
        ("unknown", Status(404, "model_not_found", "The model does not exist"), "knows no model unknown"),
        ("unknown", PAGE, "Correct model.base_url ("),
        ("unknown", Status(400, "unsupported", "what is this"), "refuses the request"),
    ],
)
async def test_what_will_not_answer_is_named_at_the_start(tmp_path: Path, chat: str, answer: Step, told: str) -> None:
    async with ScriptedModel([answer]) as model:
        line = await fault(configured(tmp_path, model.base_url, chat))
    assert line is not None
    assert line.startswith("The model does not answer: ")
    assert told in line
    assert "\n" not in line


async def test_a_listed_model_is_not_asked_and_an_unlisted_one_that_answers_is_no_fault(tmp_path: Path) -> None:
    async with ScriptedModel([reply("Hello.")]) as model:
        assert await fault(configured(tmp_path, model.base_url, "scripted")) is None
        assert model.requests == []
        assert await fault(configured(tmp_path, model.base_url, "unlisted")) is None


@pytest.mark.parametrize("end", ["/chat/completions", "/chat/completions/", "/responses", "/models", "/"])
async def test_an_address_that_says_too_much_is_corrected(tmp_path: Path, end: str) -> None:
    async with ScriptedModel([]) as model:
        loaded = configured(tmp_path, model.base_url + end, "scripted")
        assert loaded.model_url == model.base_url
        assert await fault(loaded) is None


async def test_an_address_without_v1_is_completed_and_said_so(tmp_path: Path) -> None:
    async with ScriptedModel([]) as model:
        line = await fault(configured(tmp_path, model.base_url.removesuffix("/v1"), "scripted"))
        assert line is not None
        assert f"{model.base_url} is used" in line
