"""The benchmarks of speed, size and growth, tiny: they run, agree with themselves, and say what they found."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bot.bench import footprint, prompt_growth, search, throughput, turn_overhead
from bot.bench.bulk import chats_of, texts_of
from bot.bench.sizes import Sizes
from bot.cli.bench import NAMES
from bot.config.findings import StartError
from bot.embedded import Servers
from memory.embedding import Vector


class LetterEmbedder:
    """Vectors that follow from the letters of a text; made in no time."""

    name = "letters"
    dims = 26
    floor = 0.0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [[1.0 + text.casefold().count(chr(ord("a") + n)) for n in range(26)] for text in texts]


def quiet(_: str) -> None:
    pass


async def test_turn_overhead_times_the_same_request_in_all_programs(running: Servers, locomo: Path) -> None:
    timed = await turn_overhead.run(running, texts_of(locomo), recall=60, rounds=3, prompts=(1_000,), warm_up=1, say=quiet)
    [one] = timed
    assert len(one.ours) == len(one.bare["plain"]) == len(one.bare["lean"]) == 3
    assert all(0 < seconds < 5 for seconds in [*one.ours, *one.bare["plain"], *one.bare["lean"]])
    lines = turn_overhead.report(timed).splitlines()
    assert [line.split()[4] for line in lines[1:]] == ["p50", "p99"]


async def test_throughput_counts_turns_commits_and_memory(running: Servers, locomo: Path) -> None:
    measured, engine = await throughput.run(
        running, texts_of(locomo), agents=4, rounds=1, slices=1, prompts=(1_000,), latency=0.05, say=quiet
    )
    [one] = measured
    assert one.ours > 0
    assert 4 <= one.commits < 20
    assert set(one.bare) == {"plain", "lean", "two"}
    assert engine > 0
    assert "4 agents" in throughput.report(measured, engine, 4)


async def test_prompt_growth_compares_every_call_with_full_context(running: Servers, locomo: Path) -> None:
    calls = await prompt_growth.run(running, texts_of(locomo), messages=60, budget=4_000, say=quiet)
    assert sum(not call.sized.for_summary for call in calls) == 30
    assert any(call.sized.for_summary for call in calls)
    assert all(call.sized.tokens <= 4_000 for call in calls)
    assert 0.8 < prompt_growth.growth(calls, 60, 20) < 1.25
    assert calls[-1].full > 2 * calls[0].full
    assert "In a prefix seen before" in prompt_growth.report(calls, 60, 20)


async def test_search_is_measured_alone_and_in_a_crowd(running: Servers, locomo: Path) -> None:
    [found] = await search.run(running, chats_of(locomo), LetterEmbedder(), sizes=[200], others=2, questions=2, say=quiet)
    assert found.messages == 200
    assert len(found.alone) == len(found.crowd) == len(found.page_13) == 2
    assert found.nearest >= 0.9
    assert search.report([found]).splitlines()[-1].startswith("200")


async def test_footprint_says_what_messages_take_on_disk(running: Servers, locomo: Path) -> None:
    grown = await footprint.disk(running, texts_of(locomo), 6)
    assert grown.whole >= 0
    assert set(grown.tables) == set(footprint.TABLES)
    assert "disk per 1,000 messages" in footprint.report({"later": 1.0}, {"bot": 100.0}, grown)


def test_a_prompt_is_compared_with_what_was_seen_before() -> None:
    sizes = Sizes()

    def request(*contents: str) -> dict[str, object]:
        return {"messages": [{"role": "user", "content": content} for content in contents], "tools": [{"name": "search"}]}

    first = sizes.of(request("one two three", "four five six"))
    assert first.seen == 0
    again = sizes.of(request("one two three", "four five six", "seven"))
    assert again.tokens > again.seen == first.tokens - 3  # but for what opens the reply
    other = sizes.of(request("one two three", "four five nine", "seven"))
    assert again.seen > other.seen > sizes.of(request("something else")).seen > 0
    assert sizes.of({"messages": [{"role": "user", "content": "sum up"}]}).for_summary


@pytest.mark.parametrize(
    "main",
    [turn_overhead.main, throughput.main, prompt_growth.main, search.main, footprint.main],
    ids=lambda main: str(main.__module__),
)
def test_data_without_conversations_gets_a_clear_line(main: Callable[[Path], int], tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"^--data: no LoCoMo file .*Name one"):
        main(tmp_path)
    (tmp_path / "locomo.json").write_text("{}{")
    with pytest.raises(StartError, match=r"^--data: .* is no LoCoMo file .*Name locomo"):
        main(tmp_path)


def test_the_command_line_says_in_one_line_what_is_wrong_with_the_data(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot", "bench", "eviction", "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("bot: --data: no conversations at ")
    assert len(done.stderr.splitlines()) == 1


def test_every_benchmark_has_a_name_and_a_main() -> None:
    for name in NAMES:
        assert callable(importlib.import_module(f"bot.bench.{name}").main)
