"""`bot bench openers --data PATH`: the paper's conversation opener task over Multi-Session Chats, with controls that unmask parroting.

Sessions 1 to 3 are told to a real agent: one speaker is the person, the other's words are what the bot said; the facts that the data's
annotators took from the person's words stand in working context. Then an opener's timed event wakes the agent, and what it says is
compared by the cosine of sentence vectors: SIM-1 and SIM-3 with the nearest gold persona line of the person and the mean of the nearest
three, SIM-H with what the human said at the beginning of session 4.

A high SIM-1 alone says little: a fact repeated word for word has the highest. So beside the model stand the human, a generic greeting, a
fact of the person said back, and the column `copied`: the share of an opener's words that stand in that order in the nearest line.

The model is the rehearsal model, or any endpoint: ENDPOINT (its address), MODEL, and KEY_ENV (the NAME of the variable with its key) in
the environment; EMBEDDING names an embedding model of it, else the local one compares. SAMPLES chats are taken, ALL=1 takes all.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import statistics
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot import rehearsal
from bot.app.runtime import engine_settings
from bot.bench.eviction import SEED, Teller, read_msc, tell
from bot.bench.model import ModelServer
from bot.bench.retrieval import Chat
from bot.bench.stage import Talk, ground, services_on, table
from bot.config.findings import StartError
from bot.config.sections import EngineSection
from bot.embedded import Servers
from bot.engine.inbox import accept_timed
from bot.engine.queue import Queue
from memory import working_context
from memory.embedding import Embedder, Vector

SAMPLES = 10
GENERIC = "Hi! How are you doing today? Anything new?"
DAYS_LATER = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class Sample:
    """One chat: what is told, the person's facts in the order of their words, the gold lines, and the human's opener."""

    chat: Chat
    facts: tuple[str, ...]
    gold: tuple[str, ...]
    human: str


@dataclass(slots=True)
class Row:
    """One way of opening, over all samples."""

    name: str
    sim1: list[float] = field(default_factory=list)
    sim3: list[float] = field(default_factory=list)
    simh: list[float] = field(default_factory=list)
    copied: list[float] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    silent: int = 0
    calls: int = 0


def read(data: Path, limit: int | None) -> list[Sample]:
    """At most `limit` chats of an msc*.jsonl in a folder, or of one file. Raises StartError."""
    files = sorted(data.rglob("msc*.jsonl")) if data.is_dir() else [data]
    try:
        samples = [sample for file in files for sample in _of(file)]
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise StartError(f"--data: a file at {data} is no MSC file ({type(error).__name__}). Correct it.") from error
    if not samples:
        raise StartError(f"--data: no Multi-Session Chats at {data}. Name a folder with msc*.jsonl, or one such file.")
    return samples if limit is None or limit >= len(samples) else random.Random(SEED).sample(samples, limit)


def _of(file: Path) -> list[Sample]:
    samples = []
    held = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for chat, one in zip(read_msc(file), held, strict=True):
        # Who opens session 4 is the bot, so the other one is the person.
        bot = int(one["sessions"][3]["utterances"][0]["speaker"])
        person = 1 - bot
        said = [
            utterance for session in one["sessions"][:3] for utterance in session["utterances"] if utterance["speaker"] == person
        ]
        facts = tuple(str(utterance["fact"]) for utterance in said if utterance["fact"])
        gold = tuple(str(line) for line in one["gold_persona_1to3"][person])
        told = replace(chat, first=f"speaker {person}", sessions=chat.sessions[:3])
        if gold and facts:
            samples.append(Sample(told, facts, gold, str(one["human_opener_session4"])))
    return samples


@dataclass(frozen=True, slots=True)
class Asked:
    """The endpoint that is measured."""

    url: str
    model: str
    key_env: str

    @property
    def section(self) -> Mapping[str, Any]:
        """As the configuration's section `model`."""
        return {"base_url": self.url, "chat": self.model, "api_key_env": self.key_env}


async def run(running: Servers, samples: Sequence[Sample], asked: Asked) -> list[Row]:
    """Tell every chat, let the agent open, and compare."""
    rows = [Row(name) for name in (asked.model, "human", "generic greeting", "parroted fact")]
    async with (
        ModelServer(teller := Teller()) as scripted,
        services_on(running, scripted.base_url) as telling,
        services_on(running, asked.url, model=asked.section) as measured,
        Queue(telling.at.database, engine_settings(EngineSection())) as queue,
    ):
        embedder = await _embedder(measured)
        for sample in samples:
            talk = Talk(telling, queue, f"{sample.chat.name}-{uuid.uuid4()}")
            await tell(talk, teller, sample.chat)
            await _remember(talk, sample.facts)
            opening = Talk(measured, queue, talk.user, at=talk.at + DAYS_LATER, agent=talk.agent)
            said = await _open(opening)
            assert opening.claimed is not None
            rows[0].calls += len(await opening.rows("SELECT 1 FROM usage WHERE turn_id = %s", opening.claimed.turn))
            rows[0].silent += not said
            for row, opener in zip(rows, (said, sample.human, GENERIC, sample.facts[-1]), strict=True):
                if opener:
                    await _compare(embedder, row, opener, sample)
    return rows


async def _embedder(services: Any) -> Embedder:
    from bot.app.services import embedder_for

    name = os.environ.get("EMBEDDING", "")
    loaded = services.loaded
    loaded.config = loaded.config.model_copy(update={"model": loaded.config.model.model_copy(update={"embedding": name})})
    return await embedder_for(loaded, services.db, services.model)


async def _remember(talk: Talk, facts: Sequence[str]) -> None:
    """The annotated facts as entries, as many as a section holds, the newest first to stay."""
    [place] = await talk.rows("SELECT place_id FROM conversations")
    kept: list[str] = []
    for fact in reversed(facts):
        if sum(map(len, kept)) + len(fact) > working_context.SECTION_LIMITS["key_facts"]:
            break
        kept.append(fact)
    async with talk.services.db.agent(talk.agent, place["place_id"]) as connection:
        for fact in reversed(kept):
            await working_context.insert(
                connection,
                agent=talk.agent,
                place=place["place_id"],
                visibility="direct",
                section="key_facts",
                content=fact,
                turn=None,
                at=talk.at,
            )
        await connection.execute("UPDATE agents SET version = version + 1 WHERE id = %s", (talk.agent,))


async def _open(talk: Talk) -> str:
    """The opener that the agent makes when its timer is due; empty where it stays silent."""
    [place] = await talk.rows("SELECT place_id FROM conversations")
    payload = {"timer": "opener", "purpose": "", "due_at": talk.at.isoformat(), "every": None}
    async with talk.services.db.bare() as connection:
        await accept_timed(
            connection, agent=talk.agent, place=place["place_id"], key=f"opener-{uuid.uuid4()}", payload=payload, now=talk.at
        )
    return " ".join(await talk.turn())


async def _compare(embedder: Embedder, row: Row, opener: str, sample: Sample) -> None:
    vector, human, *gold = await embedder.embed([opener, sample.human, *sample.gold])
    near = sorted(((cosine(vector, line), text) for line, text in zip(gold, sample.gold, strict=True)), reverse=True)
    row.sim1.append(near[0][0])
    row.sim3.append(statistics.fmean(score for score, _ in near[:3]))
    row.simh.append(cosine(vector, human))
    row.copied.append(max(copied(opener, text) for text in (*sample.gold, *sample.facts)))
    row.words.append(len(opener.split()))


def cosine(one: Vector, other: Vector) -> float:
    """Of two vectors, 0 where one has no direction."""
    length = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / length if length else 0.0


def copied(opener: str, line: str) -> float:
    """The share of an opener's words that stand in a line in the same order (the longest common subsequence)."""
    said, written = ([word.strip(".,!?;:'\"").casefold() for word in text.split()] for text in (opener, line))
    best = [0] * (len(written) + 1)
    for word in said:
        before = 0
        for index, other in enumerate(written, 1):
            before, best[index] = best[index], before + 1 if word == other else max(best[index], best[index - 1])
    return best[-1] / len(said) if said else 0.0


def report(rows: Sequence[Row], samples: int) -> str:
    """A line for each way of opening."""
    lines = []
    for row in rows:
        means = [f"{statistics.fmean(values):.3f}" if values else "-" for values in (row.sim1, row.sim3, row.simh, row.copied)]
        lines.append((row.name, *means, f"{statistics.fmean(row.words):.1f}" if row.words else "-"))
    said = samples - rows[0].silent
    calls = f"{rows[0].calls / said:.2f} model calls per opener" if said else "no opener at all"
    return (
        table(("opener", "SIM-1", "SIM-3", "SIM-H", "copied", "words"), lines)
        + f"\n{samples} chats; {rows[0].name} stayed silent in {rows[0].silent}; {calls}. The paper's GPT-4: 0.868, 0.843, 0.773; its human: "
        "0.800, 0.800, 1 (with another, unnamed embedding model: compare rows, not tables)."
    )


async def _measure(running: Servers, samples: Sequence[Sample]) -> str:
    url = os.environ.get("ENDPOINT", "")
    if url:
        asked = Asked(url, os.environ.get("MODEL", ""), os.environ.get("KEY_ENV", ""))
        return report(await run(running, samples, asked), len(samples))
    async with rehearsal.serve() as own:
        return report(await run(running, samples, Asked(own, rehearsal.MODEL, "")), len(samples))


def main(data: Path) -> int:
    """Print the figures."""
    limit = None if os.environ.get("ALL") == "1" else int(os.environ.get("SAMPLES", SAMPLES))
    samples = read(data, limit)
    with ground() as running:
        print(asyncio.run(_measure(running, samples)))
    return 0
