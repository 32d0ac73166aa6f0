"""`bot bench nested_kv --data PATH`: the paper's nested key-value task, which shows that look-ups can be chained and end.

140 pairs of UUIDs stand in archival storage; a question names a key, and where its value is another key, that one is to be looked up
next, until a value is no key. The data is MemGPT's (cpacker/MemGPT, paper_experiments/nested_kv_task): pairs, and for each level
orderings of the indices of the pairs that are chained. As in its program an ordering of k indices makes k keys, the value of each
replaced by the key of the next; level 0 is a sample's own key. (The orderings of level 1 chain one key too: nothing is replaced.)

The model is a script that plays optimally over HTTP, so this measures the bot: does a search find the row, does a turn go on, is the
answer exact. Calls must be keys + 1, as only a search can tell that the last value is no key.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.bench.model import Answer, ModelServer, Request
from bot.bench.stage import Talk, ground, hand_driven, table
from bot.config.findings import StartError
from bot.embedded import Servers
from bot.model.calls import Call
from memory import archival_storage
from memory.db import value

LEVELS = range(7)
SAMPLES = 30
"""Questions of a level, as many as the paper's; ALL=1 in the environment takes all there are."""
PAIRS = "kv-retrieval-140_keys.jsonl.gz"
ORDERINGS = "random_orderings_100_samples_140_indices_{}_levels.jsonl"
QUESTION = (
    "You have a list of key-value pairs in archival storage; all keys and values are UUIDs. Give the value of the key below. If a value "
    "is itself a key, give the value of that key, and so on. Answer with the value only.\nKey: {}"
)
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One question: the pairs, the keys that lead to the answer, and the answer."""

    level: int
    pairs: Mapping[str, str]
    keys: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of one question."""

    level: int
    keys: int
    exact: bool
    calls: int
    passes: int


def nested(level: int, pairs: Sequence[tuple[str, str]], ordering: Sequence[int]) -> Sample:
    """Chain the pairs of an ordering: the value of each is replaced by the key of the next."""
    chained = dict(pairs)
    keys = [pairs[index][0] for index in ordering]
    for key, following in zip(keys, keys[1:], strict=False):
        chained[key] = following
    return Sample(level, chained, tuple(keys), chained[keys[-1]])


def read(folder: Path, limit: int | None) -> list[Sample]:
    """At most `limit` samples of each level. Raises StartError."""
    folder = folder / "nested-kv" if (folder / "nested-kv").is_dir() else folder
    try:
        with gzip.open(folder / PAIRS, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        samples = []
        for level in LEVELS:
            if level == 0:
                orderings = [[[key for key, _ in each["ordered_kv_records"]].index(each["key"])] for each in records[:100]]
            else:
                orderings = [json.loads(line) for line in (folder / ORDERINGS.format(level)).read_text().splitlines()]
            for ordering, record in list(zip(orderings, records, strict=False))[:limit]:
                samples.append(nested(level, [(key, val) for key, val in record["ordered_kv_records"]], ordering))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise StartError(
            f"--data: no nested key-value data in {folder} ({type(error).__name__}). Name the folder with {PAIRS} and the orderings."
        ) from error
    return samples


def optimal(request: Request) -> Answer:
    """Search the key of the question, then each value found, until a search shows that it is no key: that is the answer."""
    messages = request.messages
    asked = max(i for i, m in enumerate(messages) if m["role"] == "user" and "Key: " in m["content"])
    wanted = re.findall(_UUID, messages[asked]["content"])[-1]
    searched: set[str] = set()
    for message in messages[asked + 1 :]:
        for call in message.get("tool_calls", ()):
            searched.add(json.loads(call["function"]["arguments"])["query"])
        if message["role"] == "tool":
            found = re.search(rf"key = {wanted}, value = ({_UUID})", message["content"])
            if found is None:
                return Answer(wanted)
            wanted = found[1]
    if wanted in searched:
        return Answer("They go round in a circle.")
    return Answer(calls=[Call(f"look_{len(searched)}", "archival_storage_search", json.dumps({"query": wanted}))])


async def ask(talk: Talk, sample: Sample) -> Answered:
    """Store a sample's pairs, ask its question, and see what comes."""
    async with talk.services.db.bare() as connection:
        agent = await value(connection, "SELECT agent_of('bench', '', %s, %s, NULL, 'UTC')", (talk.user, talk.name))
        place = await value(
            connection, "SELECT place_of('bench', '', '', %s, 'direct', %s, NULL, %s)", (talk.user, talk.name, agent)
        )
        await connection.execute("SELECT conversation_of(%s, %s)", (agent, place))
    async with talk.services.db.agent(agent, place) as connection:
        for key, val in sample.pairs.items():
            await archival_storage.insert(
                connection,
                agent=agent,
                place=place,
                visibility="direct",
                content=f"Key-value pair: key = {key}, value = {val}",
                at=talk.at,
            )
    await talk.hear(QUESTION.format(sample.keys[0]))
    said = await talk.turn()
    assert talk.claimed is not None
    [row] = await talk.rows("SELECT memory_calls, passes FROM turns WHERE id = %s", talk.claimed.turn)
    return Answered(sample.level, len(sample.keys), said == [sample.answer], row["memory_calls"], row["passes"])


async def run(running: Servers, samples: Sequence[Sample], *, say: Callable[[str], None] = print) -> list[Answered]:
    """Ask every question, each of an agent of its own."""
    answers = []
    async with ModelServer(optimal) as model, hand_driven(running, model) as (services, queue):
        for number, sample in enumerate(samples, 1):
            answers.append(await ask(Talk(services, queue, f"kv-{sample.level}-{number}"), sample))
            if number % 50 == 0:
                say(f"{number} of {len(samples)} questions ...")
    return answers


def report(answers: Sequence[Answered]) -> str:
    """A line a level."""
    rows = []
    for level in sorted({answer.level for answer in answers}):
        own = [answer for answer in answers if answer.level == level]
        calls = [answer.calls for answer in own]
        rows.append(
            (
                level,
                own[0].keys,
                len(own),
                f"{100 * statistics.fmean(a.exact for a in own):.1f} %",
                f"{min(calls)} to {max(calls)}",
                own[0].keys + 1,
                f"{statistics.fmean(a.passes for a in own):.1f}",
            )
        )
    return table(("level", "keys", "questions", "exact", "calls", "keys + 1", "passes"), rows)


def main(data: Path) -> int:
    """Run on servers in a folder of their own. Returns the exit code: 1 unless every answer is exact."""
    samples = read(data, None if os.environ.get("ALL") == "1" else SAMPLES)
    with ground() as running:
        answers = asyncio.run(run(running, samples))
    print(report(answers))
    return 0 if all(answer.exact and answer.calls == answer.keys + 1 for answer in answers) else 1
