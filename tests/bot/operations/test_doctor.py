"""`bot doctor`: what it finds out about embedders, folders and Redis, and what it says to do. For models see tests/bot/app."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.config.loading import Loaded, load
from bot.operations import doctor
from bot.operations.endpoint import address
from memory.db import Database
from memory.embedding import EndpointEmbedder
from tests.servers.model import unused_port


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.setenv("KEEPSAKE_DATA", str(tmp_path / "data"))
    file = tmp_path / "config.yaml"
    file.write_text("model:\n  base_url: http://127.0.0.1:9/v1\n  chat: scripted\n")
    return load(file)


def test_a_remedy_names_the_address_without_credentials() -> None:
    assert address("https://ada:hunter2@models.example.org:8443/v1?key=hunter2") == "https://models.example.org:8443/v1"


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
