"""`bot doctor`: what it finds out about models, embedders, folders and Redis, and what it says to do."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from bot.config.findings import Finding
from bot.config.loading import Loaded, load
from bot.model.client import ModelClient
from bot.operations import doctor
from bot.operations.doctor import Chain, Mode, verdict
from bot.operations.endpoint import address
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


def choosing(loaded: Loaded, calls: str) -> Loaded:
    """The configuration with another `model.calls`."""
    model = loaded.config.model.model_copy(update={"calls": calls})
    return Loaded(loaded.config.model_copy(update={"model": model}), loaded.home, loaded.file_values)


async def findings(loaded: Loaded, policy: object, *, calls: Literal["auto", "native", "schema"] = "auto") -> list[Finding]:
    async with (
        ScriptedModel(policy=policy) as model,  # type: ignore[arg-type]
        ModelClient(model.base_url, "", attempts=1, calls=calls) as client,
    ):
        found = [finding async for finding in doctor.model(client, loaded)]
        assert client.calls == calls
        return found


async def test_a_model_that_calls_functions(loaded: Loaded) -> None:
    found = await findings(loaded, able)
    assert [finding.well for finding in found] == [True] * 3
    assert "function calls work, two in a chain" in found[1].what
    assert "schema" not in " ".join(finding.what for finding in found)
    assert found[-1].what == "model.calls: auto is right"


@pytest.mark.parametrize(
    ("configured", "well", "remedy"), [("auto", True, ""), ("native", False, "Set model.calls to schema."), ("schema", True, "")]
)
async def test_a_model_that_refuses_functions_but_follows_a_schema(
    loaded: Loaded, configured: Literal["auto", "native", "schema"], well: bool, remedy: str
) -> None:
    def schema_only(request: Request) -> Step:
        if request.functions:
            return Status(400, "unsupported", "tools are not supported by this model")
        if "hello" in request.last:
            return reply("Hello!")
        said = json.dumps(request.messages)
        if "4711" in said:
            return by_schema("It is 4711.")
        return by_schema("", "birch" if "another key: birch" in said else "amber")

    found = await findings(choosing(loaded, configured), schema_only, calls=configured)
    words = "\n".join(finding.what for finding in found)
    assert "calls by JSON schema work" in words, words
    assert "function calls work" not in words
    assert (found[-1].well, found[-1].remedy) == (well, remedy)
    assert [finding.well for finding in found].count(False) == (not well)


@pytest.mark.parametrize(
    ("said", "made"),
    [
        (lambda _: reply("I do not know."), "none was made"),
        (lambda request: reply(None, call("look_up", key="oak")) if request.functions else reply("Hm."), "wrong arguments"),
    ],
    ids=["no calls", "wrong calls"],
)
async def test_a_model_that_cannot_is_one_finding_that_says_how(
    loaded: Loaded, said: Callable[[Request], Step], made: str
) -> None:
    found = await findings(loaded, said)
    [bad] = [finding for finding in found if not finding.well]
    assert (
        f"function calls do not work ({made}" in bad.what
        or f"function calls do not work (calls were made with {made}" in bad.what
    )
    assert bad.remedy == "Choose another model.chat."


async def test_a_model_that_is_not_there(loaded: Loaded) -> None:
    async with ModelClient(f"http://127.0.0.1:{unused_port()}/v1", "", attempts=1) as client:
        [found] = [finding async for finding in doctor.model(client, loaded)]
    assert "could not be reached" in found.what
    assert "model.base_url" in found.remedy


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "name that in model.api_key_env"),
        (403, "allow scripted to"),
        (404, "Correct model.base_url (http://127.0.0.1:9/v1"),
        (500, "The fault is at http://127.0.0.1:9/v1"),
    ],
)
async def test_each_fault_of_an_endpoint_has_its_own_remedy(loaded: Loaded, status: int, remedy: str) -> None:
    [found] = await findings(loaded, lambda _: Status(status))
    assert str(status) in found.what
    assert remedy in found.remedy


def test_a_remedy_names_the_address_without_credentials() -> None:
    assert address("https://ada:hunter2@models.example.org:8443/v1?key=hunter2") == "https://models.example.org:8443/v1"


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
def test_the_verdict(native: Chain | str, schema: Chain | str, configured: Mode, well: bool, said: str) -> None:
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
