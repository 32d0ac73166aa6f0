"""`bot bench eviction --data PATH`: what the FIFO queue still holds at the end of a long conversation, and what one search brings back.

Every LoCoMo conversation (snap-research/locomo) and every Multi-Session Chat is told to a real agent, message by message,
with 4k, 8k and 16k tokens of context. The first speaker is the person, the bot has the second one's name and says their words; where
the second speaks unasked, a login wakes the agent and the model calls `send_message`. Every request is counted by the model's server
with another tokenizer than the bot's.

At the end of each LoCoMo conversation every question of categories 1 to 4 with evidence is looked at: the share of its evidence that
stands in the FIFO queue, and the share that the queue and the ten messages of one search with the question bring together.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from bot.bench import retrieval
from bot.bench.model import Answer, ModelServer, Request
from bot.bench.retrieval import Chat, Turn
from bot.bench.sizes import Sized, Sizes
from bot.bench.stage import START, Talk, ground, hand_driven, table
from bot.config.findings import StartError
from bot.embedded import Servers
from bot.model.calls import Call
from bot.turn.summariser import WORDS
from memory.embedding_filler import EmbeddingFiller
from memory.search import Query, search_messages

RESERVES = {4_000: 400, 8_000: 700, 16_000: 1_500}
"""The budgets, each with its reply reserve, in tokens."""
SEED = 1
"""Which Multi-Session Chats are told when MSC in the environment says how many; without it, all are."""


class Teller:
    """The scripted model: says what the conversation says next, and sums up by keeping the newest words."""

    def __init__(self) -> None:
        self.next: str = ""
        self.unasked = False

    def __call__(self, request: Request) -> Answer:
        if request.for_summary:
            return Answer(summed_up(str(request.messages[-1]["content"])))
        if self.unasked:
            return Answer(calls=[Call(f"say_{len(self.next)}", "send_message", json.dumps({"text": self.next}))])
        return Answer(self.next)


def summed_up(asked: str) -> str:
    """The newest words of the old summary and the leaving messages, as many as a summary may have."""
    said = []
    for line in asked.splitlines():
        try:
            said.append(json.loads(line)["text"])
        except (ValueError, KeyError, TypeError):
            said.append(line)
    return " ".join(" ".join(said).split()[-WORDS:])


@dataclass(slots=True)
class Told:
    """What was seen at one budget."""

    budget: int
    chats: int = 0
    messages: int = 0
    flushes: int = 0
    unwarned: int = 0
    sized: list[Sized] = field(default_factory=list)
    in_queue: list[float] = field(default_factory=list)
    reached: list[float] = field(default_factory=list)

    @property
    def over(self) -> int:
        """Requests over the budget."""
        return sum(sized.tokens > self.budget for sized in self.sized)


def exchanges(chat: Chat) -> Iterator[tuple[list[Turn], Turn | None]]:
    """What the person says, with the answer; no words of the person: the bot speaks unasked; no answer: nothing comes back."""
    heard: list[Turn] = []
    for turn in (turn for session in chat.sessions for turn in session):
        if turn.speaker == chat.first:
            heard.append(turn)
        else:
            yield heard, turn
            heard = []
    if heard:
        yield heard, None


async def tell(talk: Talk, teller: Teller, chat: Chat) -> dict[int, str]:
    """Tell an agent a whole conversation. Returns which turn each stored message is, by the message's id."""
    for heard, answer in exchanges(chat):
        teller.unasked = not heard
        teller.next = answer.text if answer else "Take care."
        for turn in heard:
            talk.at = turn.at
            await talk.hear(turn.text)
        if answer:
            talk.at = max(talk.at, answer.at)
        if not heard:
            await talk.hear("", "login")
        await talk.turn()
    rows = await talk.rows("SELECT id, content FROM messages WHERE kind = 'message' ORDER BY position")
    said = [turn for session in chat.sessions for turn in session]
    if [row["content"].strip() for row in rows[: len(said)]] != [turn.text.strip() for turn in said]:
        raise AssertionError(f"{chat.name}: what is stored is not what was said")
    return {int(row["id"]): turn.id for row, turn in zip(rows, said, strict=False)}


async def look(talk: Talk, chat: Chat, ids: dict[int, str], told: Told) -> None:
    """Look at every question: what of its evidence is in the queue, and what one search adds."""
    rows = await talk.rows(
        "SELECT m.id FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.position >= c.fifo_start AND m.kind = 'message'"
    )
    queue = {ids[row["id"]] for row in rows if row["id"] in ids}
    for question in chat.questions:
        vector = await talk.services.meaning.of(question.text)
        async with talk.services.db.agent(talk.agent, everything=True) as connection:
            page = await search_messages(connection, Query(question.text), vector)
        found = {ids[hit.id] for hit in page.hits if hit.id in ids}
        told.in_queue.append(len(question.evidence & queue) / len(question.evidence))
        told.reached.append(len(question.evidence & (queue | found)) / len(question.evidence))


async def run(running: Servers, chats: Sequence[Chat], budget: int, reserve: int, *, say: Callable[[str], None] = print) -> Told:
    """Tell all chats at one budget; look at the questions of those that have any."""
    told, teller, sizes = Told(budget, len(chats)), Teller(), Sizes()
    context = {"budget": budget, "reply_reserve": reserve}
    asked: list[tuple[Talk, Chat, dict[int, str]]] = []
    async with ModelServer(teller, sizes=sizes) as model, hand_driven(running, model, context=context) as (services, queue):
        for chat in chats:
            talk = Talk(services, queue, f"{budget}-{chat.name}", chat.first, chat.second)
            ids = await tell(talk, teller, chat)
            told.messages += len(ids)
            told.flushes += talk.pressure.flushes
            told.unwarned += talk.pressure.unwarned
            if chat.questions:
                asked.append((talk, chat, ids))
                say(f"{budget:,} tokens: {chat.name}, {len(ids)} messages, {talk.pressure.flushes} flushes")
        told.sized = model.sized
        if asked:
            await EmbeddingFiller(services.db, services.meaning).fill()
        for talk, chat, ids in asked:
            await look(talk, chat, ids, told)
    return told


def read_msc(path: Path) -> list[Chat]:
    """The Multi-Session Chats of a file, in the form of LoCoMo's, without questions."""
    chats = []
    for line in path.read_text(encoding="utf-8").splitlines():
        held = json.loads(line)
        sessions = tuple(
            tuple(_msc_turns(session["utterances"], START + timedelta(days=number)))
            for number, session in enumerate(held["sessions"])
        )
        chats.append(Chat(str(held["id"]), "speaker 0", sessions, ()))
    return chats


def _msc_turns(utterances: Sequence[dict[str, object]], at: datetime) -> Iterator[Turn]:
    for number, utterance in enumerate(utterances):
        yield Turn(
            str(utterance["n"]), f"speaker {utterance['speaker']}", str(utterance["text"]), at + timedelta(seconds=30 * number)
        )


def read(data: Path, limit: int | None) -> tuple[list[Chat], list[Chat]]:
    """LoCoMo's conversations and at most `limit` Multi-Session Chats of a folder or one file. Raises StartError."""
    locomo = sorted(data.rglob("locomo*.json")) if data.is_dir() else [data] * (data.suffix == ".json")
    msc = sorted(data.rglob("msc*.jsonl")) if data.is_dir() else [data] * (data.suffix == ".jsonl")
    if not locomo and not msc:
        raise StartError(f"--data: no conversations at {data}. Name a folder with locomo*.json and msc*.jsonl, or one such file.")
    try:
        long = [chat for path in locomo for chat in retrieval.read(path)]
        short = [chat for path in msc for chat in read_msc(path)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StartError(f"--data: a file at {data} is no LoCoMo or MSC file ({type(error).__name__}). Correct it.") from error
    return long, short if limit is None or limit >= len(short) else random.Random(SEED).sample(short, limit)


def report(results: Sequence[tuple[str, Told]]) -> str:
    """A line for each corpus and budget."""
    rows = []
    for name, told in results:
        most = max((sized.tokens for sized in told.sized), default=0)
        rows.append(
            (
                name,
                f"{told.budget:,}",
                told.chats,
                f"{told.messages:,}",
                f"{len(told.sized):,}",
                f"{most / told.budget:.1%}",
                told.over,
                told.flushes,
                told.unwarned,
                _mean(told.in_queue),
                _mean(told.reached),
            )
        )
    return table(
        (
            "data",
            "budget",
            "chats",
            "messages",
            "requests",
            "largest",
            "over budget",
            "flushes",
            "unwarned",
            "in queue",
            "queue + 1 search",
        ),
        rows,
    )


def _mean(shares: Sequence[float]) -> str:
    return f"{statistics.fmean(shares):.1%}" if shares else "-"


def main(data: Path) -> int:
    """Run on servers in a folder of their own. Returns the exit code: 1 when a request was over its budget."""
    share = os.environ.get("MSC", "")
    long, short = read(data, int(share) if share.isdigit() else None)
    results: list[tuple[str, Told]] = []
    with ground() as running:
        for name, chats in (("LoCoMo", long), ("MSC", short)):
            for budget, reserve in RESERVES.items():
                if chats:
                    results.append((name, asyncio.run(run(running, chats, budget, reserve))))
                    print(report(results[-1:]), flush=True)
    print(report(results))
    print("To beat (a simulation, LoCoMo): 13.7% and 74.0% at 4,000; 25.5% and 76.8% at 8,000.")
    return int(any(told.over for _, told in results))
