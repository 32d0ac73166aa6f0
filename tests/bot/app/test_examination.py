"""`bot doctor` tries the model with what the bot really sends: each fault planted here is found, and told with what mends it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from bot.app.examination import QUESTION, Examination, Trial, red_square, verdict
from bot.app.modes import _told
from bot.app.services import Names
from bot.config.findings import Finding, StartError, wrong
from bot.config.loading import Loaded, load
from bot.config.writing import write
from bot.model.calls import Call
from bot.model.client import ModelClient
from tests.servers.model import Delay, Request, ScriptedModel, Status, Step, call, reply, unused_port

NAMES = Names("scripted", "scripted", "scripted")


@dataclass(frozen=True)
class Model:
    """A model with the faults of a test; without any it does all that the bot needs."""

    native: bool = True
    """Calls functions."""
    refuses_tools: bool = False
    schema: bool = True
    """Follows a schema."""
    keeps: bool = True
    """Calls a function for what it is told."""
    pages: bool = True
    """Goes on to the second page."""
    forgets: bool = False
    """Does not know what stands in view."""
    reads: int = 10**9
    """Characters of a prompt that it reads; older ones it forgets."""
    told: bool = False
    """Reports the tokens that it read."""
    overflows: bool = False
    """Refuses what is longer."""
    blind: bool = False
    streams: bool = True
    slow: float = 0.0
    only_small: bool = False
    """Manages the compact prompts alone."""

    def __call__(self, request: Request) -> Step:
        step = self._answer(request)
        return Delay(self.slow, step) if self.slow else step

    def _answer(self, request: Request) -> Step:
        by_schema = "response_format" in request.body
        if self.refuses_tools and request.functions:
            return Status(400, "unsupported", "tools are not supported by this model")
        text = json.dumps(request.messages, ensure_ascii=False)
        if self.overflows and len(text) > self.reads:
            return Status(400, "context_length_exceeded", "too long")
        able = (self.schema if by_schema else self.native and bool(request.functions)) and (
            not self.only_small or "archival_storage_insert" not in json.dumps(request.body)
        )
        said, calls = self._said(text, able, streamed=bool(request.body.get("stream")))
        usage = {"prompt_tokens": min(len(text), self.reads) // 4} if self.told else {}
        if not by_schema:
            return reply(said or None, *calls, **usage)
        made = [{"function": one.name, "arguments": json.loads(one.arguments)} for one in calls]
        return reply(json.dumps({"calls": made, "text": said}), **usage)

    def _said(self, text: str, able: bool, *, streamed: bool) -> tuple[str, tuple[Call, ...]]:
        asked = max(
            (
                "hello in one word",
                "Count from 1",
                "Mia moved",
                "Where does my sister",
                "garden gate?",
                "Which colour",
                QUESTION[:20],
            ),
            key=text.rfind,
        )
        if asked == "Mia moved":
            kept = able and self.keeps and (self.streams or not streamed)
            return "Porto!", (call("working_context_append", content="Nora's sister Mia lives in Porto."),) if kept else ()
        if asked == "garden gate?":
            page = len(re.findall(r"Showing 1 of 2 results", text)) + 1
            if not able or "4711" in text or (page == 2 and not self.pages):
                return "4711" if "4711" in text else "I do not know.", ()
            return "", (call("recall_storage_search", query="garden gate", page=page),)
        answers = {
            "hello in one word": "Hello!",
            "Count from 1": " ".join(map(str, range(1, 81))),
            "Where does my sister": "I do not know." if self.forgets or "lives in Porto" not in text else "In Porto.",
            "Which colour": "A cat." if self.blind else "Red.",
            QUESTION[:20]: "Marzipan." if "marzipan" in text[-self.reads :] else "You told me none.",
        }
        return answers[asked], ()


def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, **model: object) -> Loaded:
    monkeypatch.setenv("KEEPSAKE_DATA", str(tmp_path / "data"))
    file = tmp_path / "config.yaml"
    context = {"budget": 8000, "reply_reserve": 700}
    keys = {"base_url": url, "chat": "scripted", "size": "large", **model}
    file.write_text(yaml.safe_dump({"model": keys, "context": context}))
    return load(file)


async def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Model, **chosen: object) -> list[Finding]:
    async with ScriptedModel(policy=planted) as model:
        loaded = configured(tmp_path, monkeypatch, model.base_url, **chosen)
        calls = loaded.config.model.calls
        async with ModelClient(model.base_url, "", attempts=1, calls=calls, timeout=60) as client:
            found = [finding async for finding in Examination(loaded, client, NAMES).findings()]
            assert (client.calls, client.streams) == (calls, True)
    return found


def faults(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if not finding.well]


async def test_a_model_that_does_all_gets_a_line_for_each_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await findings(tmp_path, monkeypatch, Model(), sees_images=True)
    assert faults(found) == []
    told = "\n".join(finding.what for finding in found)
    for words in (
        "scripted answers",
        "function calls work: a fact that was told is kept; a fact in view is known; what is on a search's second page is found",
        "calls by JSON schema work",
        "model.calls: auto is right",
        "stream: works, with function calls",
        "a picture is seen",
        "8,000 tokens are read from the first line to the last",
        "tokens/s read",
    ):
        assert words in told, told


async def test_what_is_sent_is_what_the_bot_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedModel(policy=Model()) as model:
        loaded = configured(tmp_path, monkeypatch, model.base_url)
        async with ModelClient(model.base_url, "", attempts=1, calls="auto") as client:
            assert not faults([finding async for finding in Examination(loaded, client, NAMES).findings()])
    first = next(request for request in model.requests if request.functions)
    assert "You keep your own memory." in first.contents("system")[0]
    assert f"Name: {loaded.persona.name}" in first.contents("system")[0]
    assert {"working_context_append", "recall_storage_search", "set_timer"} <= set(first.functions)
    assert "Mia moved to Porto" in json.dumps(first.messages)


@pytest.mark.parametrize(
    ("planted", "chosen", "what", "fixes"),
    [
        (Model(native=False), {}, "model.calls: is auto, and function calls do not work", {"model.calls": "schema"}),
        (Model(refuses_tools=True), {"calls": "native"}, "does no function calls", {"model.calls": "schema"}),
        (Model(schema=False), {"calls": "schema"}, "calls by JSON schema do not work", {"model.calls": "native"}),
        (Model(keeps=False), {}, "not so: a fact that was told is kept", {}),
        (Model(pages=False), {}, "not so: what is on a search's second page is found", {}),
        (Model(forgets=True), {}, "not so: a fact in view is known", {}),
        (Model(only_small=True), {}, "model.size: is large", {"model.size": "small", "model.calls": "native"}),
        (Model(blind=True), {"sees_images": True}, "a red square was not recognised", {"model.sees_images": False}),
        (Model(streams=False), {}, "calls are lost when an answer is streamed", {"model.stream": False}),
        (Model(reads=22_000), {}, "the beginning of the prompt is forgotten", {"context.budget": 6000}),
        (Model(reads=13_500, told=True), {}, "tokens of a prompt are read", {"context.budget": 4000}),
        (Model(reads=22_000, overflows=True), {}, "the endpoint refuses so long a prompt", {"context.budget": 6000}),
        (Model(slow=0.2), {"timeout": 1}, "model.timeout: is 1 s", {"model.timeout": 10}),
    ],
    ids=[
        "ignores tools",
        "refuses tools",
        "no schema",
        "keeps nothing",
        "one page only",
        "forgets",
        "only small prompts",
        "blind",
        "loses calls in a stream",
        "cuts",
        "cuts and tells",
        "refuses long prompts",
        "slow",
    ],
)
async def test_a_planted_fault_is_found_and_mended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    planted: Model,
    chosen: dict[str, object],
    what: str,
    fixes: dict[str, object],
) -> None:
    bad = faults(await findings(tmp_path, monkeypatch, planted, **chosen))
    assert any(what in finding.what for finding in bad), bad
    assert all(finding.remedy for finding in bad)
    found = {key: value for finding in bad for key, value in finding.fixes.items()}
    assert fixes.items() <= found.items()


async def test_refused_function_calls_are_no_fault_where_the_bot_goes_over_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await findings(tmp_path, monkeypatch, Model(refuses_tools=True))
    assert faults(found) == []
    assert any("auto is right (the endpoint refuses function calls" in finding.what for finding in found)


async def test_a_window_that_holds_nothing_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = faults(await findings(tmp_path, monkeypatch, Model(reads=2_000)))
    assert ["and of smaller prompts too" in finding.what for finding in bad] == [True]
    assert "OLLAMA_CONTEXT_LENGTH" in bad[0].remedy


async def test_a_model_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    loaded = configured(tmp_path, monkeypatch, url)
    async with ModelClient(url, "", attempts=1) as client:
        [found] = [finding async for finding in Examination(loaded, client, NAMES).findings()]
    assert "could not be reached" in found.what
    assert "model.base_url" in found.remedy


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "name that in model.api_key_env"),
        (403, "allow scripted to"),
        (404, "Correct model.base_url (http://127.0.0.1"),
        (500, "The fault is at http://127.0.0.1"),
    ],
)
async def test_each_fault_of_an_endpoint_has_its_own_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, remedy: str
) -> None:
    async with ScriptedModel(policy=lambda _: Status(status)) as model:
        loaded = configured(tmp_path, monkeypatch, model.base_url)
        async with ModelClient(model.base_url, "", attempts=1) as client:
            [found] = [finding async for finding in Examination(loaded, client, NAMES).findings()]
    assert str(status) in found.what
    assert remedy in found.remedy


def test_the_least_bad_way_is_named_where_none_works() -> None:
    [found] = verdict(
        [Trial("native", False, ("a", "b")), Trial("schema", False, ("a",)), Trial("native", True, refusal="no")],
        "auto",
        "large",
        "m",
    )
    assert "the least bad is model.calls: schema" in found.remedy
    assert found.fixes == {"model.calls": "schema"}


def test_the_square_is_a_png() -> None:
    assert red_square().startswith(b"\x89PNG\r\n\x1a\n")
    assert len(red_square()) < 300


# --fix ------------------------------------------------------------------------------------------------

CONFIG = """\
# Mine.
model:
  # An endpoint.
  base_url: "http://127.0.0.1:1/v1"   # at home
  calls: native  # tried in May
  chat: scripted

# How much it sees.
context:
  budget: 16000 # plenty
discord: {}
"""


def test_fix_writes_the_settings_and_keeps_the_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KEEPSAKE__MODEL__TIMEOUT", "99")
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    bad = [
        wrong("a", "b", fixes={"model.calls": "schema", "model.timeout": 300}),
        wrong("c", "d", fixes={"context.budget": 6000, "context.reply_reserve": 700, "discord.streaming": False}),
    ]
    assert _told(load(file), bad, fix=False) == 1
    assert file.read_text() == CONFIG, "nothing is written unless it is asked for"
    assert "bot doctor --fix" in capsys.readouterr().out
    assert _told(load(file), bad, fix=True) == 1
    said = capsys.readouterr().out
    assert "config.yaml: model.calls is schema now\n" in said
    assert "KEEPSAKE__MODEL__TIMEOUT in the environment overrides it" in said
    assert file.read_text() == (
        "# Mine.\nmodel:\n  timeout: 300\n  # An endpoint.\n"
        '  base_url: "http://127.0.0.1:1/v1"   # at home\n  calls: schema  # tried in May\n  chat: scripted\n\n'
        "# How much it sees.\ncontext:\n  reply_reserve: 700\n  budget: 6000 # plenty\ndiscord:\n  streaming: false\n"
    )
    assert load(file).config.context.budget == 6000
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", "model:\n  calls: schema\n"),
        ("log:\n  level: info", "log:\n  level: info\n\nmodel:\n  calls: schema\n"),
        ("model:\n", "model:\n  calls: schema\n"),
        ("model:", "model:\n  calls: schema\n"),
        ("model: {} # none\n", "model: # none\n  calls: schema\n"),
        ("model:\n    chat: x\n", "model:\n    calls: schema\n    chat: x\n"),
        ("model:\r\n  calls: auto\r\n", "model:\r\n  calls: schema\r\n"),
        ('model:\n  calls: "a # b" # c\n', "model:\n  calls: schema # c\n"),
        ("model: {chat: x}\n", None),
        ("model:\n  calls:\n    auto\n", None),
        ("- a\n", None),
    ],
)
def test_a_line_is_changed_or_nothing(tmp_path: Path, text: str, made: str | None) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(text.encode())
    if made is None:
        with pytest.raises(StartError, match=r"write it by hand: model\.calls: schema"):
            write(file, {"model.calls": "schema"})
    else:
        write(file, {"model.calls": "schema"})
    assert file.read_bytes().decode() == (text if made is None else made)
