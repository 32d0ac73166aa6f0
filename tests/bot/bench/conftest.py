"""Fixtures of the benchmarks' tests: one database of their own each, on the servers that the suite has already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from redis import Redis

from bot.embedded import Servers
from tests.conftest import Urls

EVIDENCE = "My sister Mara moved to Trondheim in March."


@pytest.fixture
def running(urls: Urls, cluster: Servers) -> Servers:
    """The suite's servers with a fresh database and an empty Redis, as a benchmark's own would be."""
    with Redis.from_url(cluster.redis_url) as redis:
        redis.flushall()  # agents of another test's database have the same numbers
    return Servers(admin_url=urls.admin, owner_url=urls.owner, bot_url=urls.bot, redis_url=cluster.redis_url)


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    """A folder with a made-up LoCoMo conversation: the evidence early, a long talk after it, and every order of speaking."""
    sessions: dict[str, object] = {"speaker_a": "Ada", "speaker_b": "Bo"}
    for number in range(1, 4):
        turns = [("Bo", f"Good to see you again, this is meeting {number}.")]  # the bot speaks first
        turns += [("Ada", EVIDENCE), ("Ada", "She likes it there.")] if number == 1 else []  # two in a row
        turns += [
            (speaker, f"{speaker} tells story {n} of meeting {number}: " + "and so on " * 20)
            for n in range(8)
            for speaker in ("Bo", "Ada")
        ]
        turns += [("Bo", "One more thing before you go.")]  # an answer
        turns += [("Ada", "See you then.")] if number == 3 else []  # left without an answer
        sessions[f"session_{number}_date_time"] = f"{number}:00 pm on {number} May, 2023"
        sessions[f"session_{number}"] = [
            {"speaker": speaker, "dia_id": f"D{number}:{n}", "text": text} for n, (speaker, text) in enumerate(turns, 1)
        ]
    questions = [
        {"question": "Where did Ada's sister Mara move?", "evidence": ["D1:2"], "category": 4},
        {"question": "How did the last meeting end?", "evidence": ["D3:18"], "category": 1},
        {"question": "Never asked", "evidence": [], "category": 5},
    ]
    sample = {"sample_id": "made-up", "conversation": sessions, "qa": questions}
    (tmp_path / "locomo-made-up.json").write_text(json.dumps([sample]), encoding="utf-8")
    return tmp_path
