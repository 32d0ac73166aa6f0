"""The section `discord` of the configuration as the adapter gets it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bot.app.discord import settings_of
from bot.config.loading import Config


def settings(monkeypatch: pytest.MonkeyPatch, **sections: Any) -> Any:
    monkeypatch.setenv("DISCORD_TOKEN", "t")
    loaded: Any = SimpleNamespace(config=Config(**sections))
    return settings_of(loaded)


def test_what_was_deleted_is_erased_unless_the_operator_wants_it_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not settings(monkeypatch).mark_deleted
    assert settings(monkeypatch, discord={"on_delete": "mark"}).mark_deleted


def test_replies_grow_only_where_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not settings(monkeypatch).streaming
    assert settings(monkeypatch, discord={"streaming": True}).streaming


def test_pictures_are_fetched_only_for_a_model_that_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(monkeypatch).image_bytes == 0
    seeing = {"base_url": "http://x/v1", "chat": "m", "sees_images": True, "image_bytes": 50_000}
    assert settings(monkeypatch, model=seeing).image_bytes == 50_000


def test_without_a_token_there_is_no_discord(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)
    loaded: Any = SimpleNamespace(config=Config())
    assert settings_of(loaded) is None
