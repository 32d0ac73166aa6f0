"""`bot doctor`: what it finds out about models, embedders, folders and Redis, and what it says to do."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot import doctor
from bot.config import Loaded, load
from bot.doctor import Chain, verdict
from bot.findings import Finding
from bot.llm import ModelClient
from memory.db import Database
from memory.embedding import EndpointEmbedder
from tests.servers.model import Request, ScriptedModel, Status, Step, call, reply, unused_port


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.setenv("KEEPSAKE_DATA", str(tmp_path / "data"))
    file = tmp_path / "config.yaml"
    file.write_text("model:\n  base_url: http://127.0.0.1:9/v1\n  chat: scripted\n")
    return load(file)


def by_schema(text: str, key: str | None = None) -> Step:
    """What a model says that is asked for calls by JSON schema."""
    return reply(json.dumps({"text": text, "calls": [{"function": "look_up", "arguments": {"key": key}}] if key else []}))


def able(request: Request) -> Step:
    """A model that does native calls and knows nothing of schemas."""
    if "hello" in request.last:
        return reply("Hello!")
    if not request.functions:
        return reply("I would look it up.")
    results = request.contents("tool")
    if not results:
        return reply(None, call("look_up", key="amber"))
    return reply(None, call("look_up", key="birch")) if len(results) == 1 else reply("It is 4711.")


async def findings(loaded: Loaded, policy: object) -> list[Finding]:
    async with ScriptedModel(policy=policy) as model, ModelClient(model.base_url, "", attempts=1) as client:  # type: ignore[arg-type]
        return [finding async for finding in doctor.model(client, loaded)]


async def test_a_model_that_calls_functions(loaded: Loaded) -> None:
    found = await findings(loaded, able)
    assert [finding.well for finding in found] == [True] * 4
    assert "function calls work, two in a chain" in found[1].what
    assert found[-1].what == "model.calls: auto is right"


async def test_a_model_that_refuses_functions_but_follows_a_schema(loaded: Loaded) -> None:
    def schema_only(request: Request) -> Step:
        if request.functions:
            return Status(400, "unsupported", "tools are not supported by this model")
        if "hello" in request.last:
            return reply("Hello!")
        said = json.dumps(request.messages)
        if "4711" in said:
            return by_schema("It is 4711.")
        return by_schema("", "birch" if "another key: birch" in said else "amber")

    found = await findings(loaded, schema_only)
    words = "\n".join(finding.what for finding in found)
    assert "calls by JSON schema work" in words, words
    assert (found[-1].well, found[-1].remedy) == (False, "Set model.calls to schema.")


async def test_a_model_that_is_not_there(loaded: Loaded) -> None:
    async with ModelClient(f"http://127.0.0.1:{unused_port()}/v1", "", attempts=1) as client:
        [found] = [finding async for finding in doctor.model(client, loaded)]
    assert "could not be reached" in found.what
    assert "model.base_url" in found.remedy


async def test_a_wrong_key(loaded: Loaded) -> None:
    [found] = await findings(loaded, lambda _: Status(401, "invalid_api_key"))
    assert "refuses the key" in found.what


@pytest.mark.parametrize(
    ("native", "schema", "configured", "well", "said"),
    [
        (Chain(2, True), Chain(2, True), "auto", True, "auto is right"),
        (Chain(2, True), "refused", "schema", False, "Set model.calls to native."),
        (Chain(2, True), Chain(2, True), "schema", True, "native is the better choice"),
        (Chain(0, False), Chain(2, True), "auto", False, "Set model.calls to schema."),
        (Chain(1, False), Chain(2, True), "schema", True, "schema is right"),
        (Chain(0, False), "refused", "auto", False, "Choose another model.chat."),
    ],
)
def test_the_verdict(native: Chain | str, schema: Chain | str, configured: str, well: bool, said: str) -> None:
    last = verdict({"native": native, "schema": schema}, configured, "m")[-1]
    assert last.well is well
    assert said in f"{last.what} {last.remedy}"


async def test_embedding(db: Database) -> None:
    async def call(texts: Sequence[str]) -> list[list[float]]:
        return [[0.5] * 512 for _ in texts]

    assert (await doctor.embedding(EndpointEmbedder("use-multilingual-3", 512, call), db)).well
    short = await doctor.embedding(EndpointEmbedder("use-multilingual-3", 256, call), db)
    assert not short.well
    assert "model.embedding" in short.remedy


async def test_redis_and_folder(loaded: Loaded) -> None:
    away = await doctor.redis(f"redis://127.0.0.1:{unused_port()}/0", inside=False)
    assert "redis.url: cannot be reached" in away.what
    assert doctor.data_folder(loaded).well
    loaded.data.chmod(0o755)
    open_folder = doctor.data_folder(loaded)
    assert (open_folder.well, open_folder.fatal) == (False, False)


def test_a_password_in_the_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("database:\n  url: postgresql://keepsake_bot:hunter2@db/keepsake\n")
    found = doctor.configuration(load(file))
    assert not found.well
    assert "KEEPSAKE__DATABASE__URL" in found.remedy
    assert "hunter2" not in f"{found.what}{found.remedy}"
