"""Eviction on a small made-up conversation: every message stored once, no request over the budget, and the shares right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.bench import eviction
from bot.bench.eviction import exchanges
from bot.config.findings import StartError
from bot.embedded import Servers


async def test_a_conversation_is_told_whole_and_its_evidence_is_found(running: Servers, locomo: Path) -> None:
    [chat], short = eviction.read(locomo, None)
    assert short == []
    told = await eviction.run(running, [chat], 4_000, 600, say=lambda _: None)
    assert told.messages == sum(map(len, chat.sessions)) == 57
    assert told.flushes >= 3
    assert told.unwarned == 0
    assert told.over == 0
    turns = sum(1 for _ in exchanges(chat))
    assert sum(not sized.for_summary for sized in told.sized) == turns
    summaries = sum(sized.for_summary for sized in told.sized)
    assert told.flushes <= summaries <= 2 * told.flushes, "two where more leaves at once than one request holds"
    # The first question's evidence left the queue long ago and is found by one search; the second's is still there.
    assert told.in_queue == [0.0, 1.0]
    assert told.reached == [1.0, 1.0]
    line = eviction.report([("LoCoMo", told)]).splitlines()[-1].split()
    assert line[:5] == ["LoCoMo", "4,000", "1", "57", str(len(told.sized))]
    assert line[-2:] == ["50.0%", "100.0%"]


def test_who_speaks_when(locomo: Path) -> None:
    [chat], _ = eviction.read(locomo, None)
    first, second, *_, last = exchanges(chat)
    assert first[0] == []  # unasked
    assert [turn.id for turn in second[0]] == ["D1:2", "D1:3"]
    assert last[1] is None  # unanswered


def test_a_summary_keeps_the_newest_words() -> None:
    asked = "Summary so far:\nold words\n\nMessages that leave:\n" + json.dumps({"type": "message", "text": "new " * 300 + "end"})
    made = eviction.summed_up(asked).split()
    assert len(made) == eviction.WORDS
    assert made[-1] == "end"


def test_multi_session_chats_are_read_and_a_share_is_the_same_each_time(tmp_path: Path) -> None:
    lines = []
    for number in range(6):
        utterances = [{"n": f"S1:{n}", "speaker": n % 2, "text": f"{number} says {n}", "fact": None} for n in range(4)]
        lines.append(json.dumps({"id": f"valid_{number}", "sessions": [{"session": 1, "utterances": utterances}]}))
    (tmp_path / "msc-valid.jsonl").write_text("\n".join(lines))
    _, everything = eviction.read(tmp_path, None)
    assert [chat.name for chat in everything] == [f"valid_{number}" for number in range(6)]
    assert [turn.text for turn in everything[2].sessions[0]] == [f"2 says {n}" for n in range(4)]
    assert eviction.read(tmp_path, 3) == eviction.read(tmp_path, 3)
    assert len(eviction.read(tmp_path, 3)[1]) == 3


def test_data_without_conversations_gets_a_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"^--data: no conversations at .*Name a folder"):
        eviction.main(tmp_path)
    (tmp_path / "locomo.json").write_text('[{"conversation": 3}]')
    with pytest.raises(StartError, match=r"^--data: a file at .*Correct it"):
        eviction.main(tmp_path)
