"""`bot bench retrieval --data PATH`: how much of what a question needs does a search bring to the first messages?

The data is LoCoMo (snap-research/locomo): very long chats of two people and questions with the ids of the turns that
hold the evidence. Every conversation becomes an agent of its own, every turn is stored the way the bot stores what is
said and gets its vector from the background filler, and every question of categories 1 to 4 (5 is unanswerable) is
searched for as it stands. R@k is the mean share of a question's evidence among the first k messages.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.embedded import servers
from memory import messages
from memory.db import Connection, Database, value
from memory.embedding import Embedder, LocalEmbedder, Meaning
from memory.embedding_filler import EmbeddingFiller, use_model
from memory.migrations import migrate
from memory.search import Query, search_messages

CUTS = (5, 10, 20)
CATEGORIES = {1: "several places", 2: "time", 3: "open", 4: "one place"}
BAR = 0.66
"""R@10 of categories 1 to 4 on the development half that the search must reach."""
_TURN = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Turn:
    """Something said: LoCoMo's id, who said it and when."""

    id: str
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids of the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Chat:
    """One conversation; `first` is the speaker who stands for the person, the other one stands for the bot."""

    name: str
    first: str
    sessions: tuple[tuple[Turn, ...], ...]
    questions: tuple[Question, ...]

    @property
    def second(self) -> str:
        """The one who stands for the bot; the first where nobody answers."""
        return next((turn.speaker for session in self.sessions for turn in session if turn.speaker != self.first), self.first)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one search brought: shares of the evidence at `CUTS`, and how long it took, in seconds."""

    category: int
    shares: tuple[float, ...]
    seconds: float


def read(path: Path) -> list[Chat]:
    """The chats of a LoCoMo file, or of all such files in a folder. Raises ValueError when there are none."""
    paths = sorted(path.rglob("locomo*.json")) if path.is_dir() else [path]
    if not paths or not all(each.is_file() for each in paths):
        raise ValueError(f"no LoCoMo file (locomo*.json) at {path}")
    return [_chat(sample) for each in paths for sample in json.loads(each.read_text(encoding="utf-8"))]


def _chat(sample: Mapping[str, Any]) -> Chat:
    conversation = sample["conversation"]
    numbers = sorted(int(key[8:]) for key, held in conversation.items() if re.fullmatch(r"session_\d+", key) and held)
    sessions = tuple(
        tuple(_turns(conversation[f"session_{number}"], conversation.get(f"session_{number}_date_time", "")))
        for number in numbers
    )
    known = {turn.id for session in sessions for turn in session}
    questions = (
        Question(str(qa["question"]), int(qa["category"]), frozenset(_TURN.findall(" ".join(qa["evidence"]))) & known)
        for qa in sample["qa"]
        if int(qa["category"]) in CATEGORIES
    )
    return Chat(
        name=str(sample["sample_id"]),
        first=conversation["speaker_a"],
        sessions=sessions,
        questions=tuple(question for question in questions if question.evidence),
    )


def _turns(session: Iterable[Mapping[str, Any]], said: str) -> Iterable[Turn]:
    try:
        at = datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        at = datetime(2023, 1, 1, tzinfo=UTC)
    for number, turn in enumerate(session):
        yield Turn(turn["dia_id"], turn["speaker"], turn["text"], at + timedelta(seconds=30 * number))


@dataclass(frozen=True, slots=True)
class Stored:
    """A chat in the database: its agent and place, and LoCoMo's id of each stored message."""

    agent: int
    place: int
    ids: Mapping[int, str]


async def write_turns(db: Database, chat: Chat) -> Stored:
    """Store a chat as the bot stores a direct message: the same functions, one transaction a turn."""
    async with db.bare() as connection:
        agent, place, conversation = await _person(connection, chat)
    ids: dict[int, str] = {}
    for turn in (turn for session in chat.sessions for turn in session):
        role: messages.Role = "user" if turn.speaker == chat.first else "assistant"
        draft = messages.Draft(role, "message", turn.text, author_name=turn.speaker)
        async with db.agent(agent, place) as connection:
            [message] = await messages.append(connection, conversation, [draft], visibility="direct", at=turn.at, turn=None)
        ids[message.id] = turn.id
    return Stored(agent, place, ids)


async def _person(connection: Connection, chat: Chat) -> tuple[int, int, int]:
    agent = await value(connection, "SELECT agent_of('bench', '', %s, %s, NULL, 'UTC')", (chat.name, chat.first))
    place = await value(connection, "SELECT place_of('bench', '', '', %s, 'direct', '', NULL, %s)", (chat.name, agent))
    return agent, place, await value(connection, "SELECT conversation_of(%s, %s)", (agent, place))


WAYS: Mapping[str, tuple[bool, bool]] = {
    "words alone": (True, False),
    "meaning alone": (False, True),
    "words and meaning": (True, True),
}
"""Whether a question is put to the search by its words and by its meaning."""


async def ask(db: Database, meaning: Meaning, chat: Chat, stored: Stored, way: tuple[bool, bool]) -> list[Answer]:
    """Search for every question of a chat. The time includes making the query's vector and the transaction."""
    by_words, by_meaning = way
    fresh = Meaning(meaning.embedder, meaning.model)  # no vector of an earlier way at hand
    asked_at = chat.sessions[-1][-1].at
    answers = []
    for question in chat.questions:
        began = time.perf_counter()
        vector = await fresh.of(question.text) if by_meaning else None
        query = Query(question.text if by_words else "", page_size=max(CUTS), asked_at=asked_at)
        async with db.agent(stored.agent, stored.place) as connection:
            page = await search_messages(connection, query, vector)
        seconds = time.perf_counter() - began
        found = [stored.ids[hit.id] for hit in page.hits]
        shares = tuple(len(question.evidence.intersection(found[:cut])) / len(question.evidence) for cut in CUTS)
        answers.append(Answer(question.category, shares, seconds))
    return answers


async def run(db: Database, embedder: Embedder, data: Path, *, say: Callable[[str], None]) -> dict[str, list[Answer]]:
    """Store all chats of `data`, fill the vectors, and search in every way. `say` is told what happens."""
    chats = read(data)
    turns = sum(len(session) for chat in chats for session in chat.sessions)
    say(f"{len(chats)} chats, {turns:,} messages, {sum(len(chat.questions) for chat in chats):,} questions")
    began = time.perf_counter()
    stored = [await write_turns(db, chat) for chat in chats]
    say(f"stored in {time.perf_counter() - began:.1f} s; making vectors with {embedder.name} ...")
    began = time.perf_counter()
    meaning = await use_model(db, embedder)
    await EmbeddingFiller(db, meaning).fill()
    say(f"{turns:,} vectors in {time.perf_counter() - began:.1f} s; searching ...")
    return {
        name: [answer for chat, where in zip(chats, stored, strict=True) for answer in await ask(db, meaning, chat, where, way)]
        for name, way in WAYS.items()
    }


def table(results: Mapping[str, Sequence[Answer]]) -> str:
    """The results as lines of text: R@5 / 10 / 20 in percent, overall and by category, and search times in milliseconds."""
    lines = [
        f"{'R@' + ' / '.join(map(str, CUTS)):<20}{'all':>20}"
        + "".join(f"{c} {name}".rjust(20) for c, name in CATEGORIES.items())
        + f"{'p50 / p95 ms':>18}"
    ]
    for name, answers in results.items():
        cells = [_shares(answers)] + [_shares([a for a in answers if a.category == category]) for category in CATEGORIES]
        times = sorted(answer.seconds * 1000 for answer in answers)
        p95 = times[min(len(times) - 1, int(len(times) * 0.95))]
        lines.append(
            f"{name:<20}" + "".join(f"{cell:>20}" for cell in cells) + f"{f'{statistics.median(times):.1f} / {p95:.1f}':>18}"
        )
    return "\n".join(lines)


def _shares(answers: Sequence[Answer]) -> str:
    if not answers:
        return "-"
    return " / ".join(f"{100 * statistics.fmean(answer.shares[i] for answer in answers):.1f}" for i in range(len(CUTS)))


def main(data: Path, embedder: Embedder | None = None) -> int:
    """Run on servers in a folder of its own, so that nothing of the bot's data is touched. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="keepsake-bench-") as folder, servers(Path(folder)) as running:
        migrate(running.owner_url)
        results = asyncio.run(_measure(running.bot_url, embedder or LocalEmbedder(), data))
    print(table(results))
    reached = statistics.fmean(answer.shares[CUTS.index(10)] for answer in results["words and meaning"])
    print(f"\nR@10 of words and meaning: {reached:.3f} (bar on the development half: {BAR})")
    return 0


async def _measure(url: str, embedder: Embedder, data: Path) -> dict[str, list[Answer]]:
    async with Database(url, size=4) as db:
        return await run(db, embedder, data, say=print)
