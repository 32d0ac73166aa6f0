"""The nested key-value task on made-up pairs: every answer exact, calls = keys + 1."""

from __future__ import annotations

import gzip
import json
import random
import uuid
from pathlib import Path

import pytest

from bot.bench import nested_kv
from bot.bench.model import Request
from bot.config.findings import StartError
from bot.embedded import Servers


def made_up(folder: Path, pairs: int = 40, samples: int = 2) -> Path:
    """Pairs and orderings in the form of the paper's data."""
    chance = random.Random(7)

    def some_uuid() -> str:
        return str(uuid.UUID(int=chance.getrandbits(128), version=4))

    with gzip.open(folder / nested_kv.PAIRS, "wt", encoding="utf-8") as file:
        for _ in range(samples):
            records = [[some_uuid(), some_uuid()] for _ in range(pairs)]
            key, val = chance.choice(records)
            file.write(json.dumps({"ordered_kv_records": records, "key": key, "value": val}) + "\n")
    for level in range(1, 7):
        lines = [json.dumps(chance.sample(range(pairs), level)) for _ in range(samples)]
        (folder / nested_kv.ORDERINGS.format(level)).write_text("\n".join(lines) + "\n")
    return folder


async def test_every_answer_is_exact_with_one_call_more_than_keys(running: Servers, tmp_path: Path) -> None:
    samples = nested_kv.read(made_up(tmp_path), 1)
    assert [len(sample.keys) for sample in samples] == [1, 1, 2, 3, 4, 5, 6]
    answers = await nested_kv.run(running, samples)
    assert all(answer.exact for answer in answers)
    assert [answer.calls for answer in answers] == [len(sample.keys) + 1 for sample in samples]
    assert [answer.passes for answer in answers] == [answer.calls + 1 for answer in answers]
    lines = nested_kv.report(answers).splitlines()
    assert len(lines) == 8
    assert lines[-1].split() == ["6", "6", "1", "100.0", "%", "7", "to", "7", "7", "8.0"]


def test_an_ordering_chains_the_keys_of_its_pairs() -> None:
    sample = nested_kv.nested(3, [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")], [2, 0, 3])
    assert sample.pairs == {"a": "d", "b": "2", "c": "a", "d": "4"}
    assert (sample.keys, sample.answer) == (("c", "a", "d"), "4")


def test_the_script_notices_a_circle() -> None:
    key = str(uuid.UUID(int=5))
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "archival_storage_search", "arguments": json.dumps({"query": key})},
    }
    messages = [
        {"role": "user", "content": f"Key: {key}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": f"key = {key}, value = {key}"},
    ]
    assert nested_kv.optimal(Request(json.dumps({"messages": messages}).encode())).text == "They go round in a circle."


def test_a_folder_without_the_data_gets_a_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"^--data: no nested key-value data in .*Name the folder"):
        nested_kv.read(tmp_path, None)
    (made_up(tmp_path) / nested_kv.PAIRS).write_bytes(b"no gzip")
    with pytest.raises(StartError, match="^--data: "):
        nested_kv.main(tmp_path)
