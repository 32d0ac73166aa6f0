"""How large a model is, found out at the first start by a few tasks, and kept; what a small one is sent then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.app import trials
from bot.app.services import Names
from bot.config.loading import Loaded, load
from bot.model.client import ModelClient
from tests.bot.app.test_examination import Model
from tests.servers.model import Request, ScriptedModel, Status, Step, call, reply, unused_port

NAMES = Names("scripted", "scripted", "scripted")


def able(request: Request) -> Step:
    text = json.dumps(request.messages)
    if "bread out" in text:
        return reply("I will.", call("set_timer", purpose="bread", asked="Remind me in 20 minutes", in_minutes=20))
    if "Good morning" in text:
        return reply("Good morning!")
    return Model()(request)


def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, size: str = "auto") -> Loaded:
    monkeypatch.setenv("KEEPSAKE_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir(exist_ok=True)
    file = tmp_path / "config.yaml"
    file.write_text(f"model: {{base_url: {json.dumps(url)}, chat: scripted, size: {size}}}\n")
    return load(file)


@pytest.mark.parametrize(("policy", "small"), [(able, False), (lambda _: reply("I am Mika."), True)], ids=["able", "talks only"])
async def test_a_model_is_tried_once_and_what_came_of_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: object, small: bool
) -> None:
    said: list[str] = []
    async with ScriptedModel(policy=policy) as model:  # type: ignore[arg-type]
        loaded = configured(tmp_path, monkeypatch, model.base_url)
        async with ModelClient(model.base_url, "", attempts=1, calls="auto") as client:
            assert await trials.small(loaded, client, NAMES, said.append) is small
            asked = len(model.requests)
            assert 2 <= asked <= 6
            assert await trials.small(loaded, client, NAMES, said.append) is small
            assert len(model.requests) == asked, "kept, not tried again"
            other = Names("other", "other", "other")
            await trials.small(loaded, client, other, said.append)
            assert len(model.requests) > asked, "another model is tried by itself"
    kept = json.loads((tmp_path / "data" / trials.SIZES).read_text())
    assert set(kept) == {f"{model.base_url} scripted", f"{model.base_url} other"}
    assert f"scripted gets the prompts for {'small' if small else 'large'} models" in said[1]


@pytest.mark.parametrize(("size", "small"), [("small", True), ("large", False)])
async def test_the_operators_word_needs_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, small: bool) -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    async with ModelClient(url, "", attempts=1) as client:
        assert await trials.small(configured(tmp_path, monkeypatch, url, size), client, NAMES, lambda _: None) is small


async def test_an_endpoint_that_is_away_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedModel(policy=lambda _: Status(503)) as model:
        loaded = configured(tmp_path, monkeypatch, model.base_url)
        async with ModelClient(model.base_url, "", attempts=1) as client:
            assert await trials.small(loaded, client, NAMES, lambda _: None) is False
    assert not (tmp_path / "data" / trials.SIZES).exists()


async def test_a_damaged_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedModel(policy=able) as model:
        loaded = configured(tmp_path, monkeypatch, model.base_url)
        (tmp_path / "data" / trials.SIZES).write_text("[oh")
        async with ModelClient(model.base_url, "", attempts=1, calls="auto") as client:
            assert await trials.small(loaded, client, NAMES, lambda _: None) is False
    assert list(json.loads((tmp_path / "data" / trials.SIZES).read_text()).values()) == ["large"]
