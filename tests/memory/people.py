"""A person in a place, for tests of memory: says things, stores texts, and looks for them."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memory import archival_storage, messages
from memory.db import Connection, Database, value
from memory.embedding import Embedder, Meaning, QueryVector, Vector
from memory.embedding_filler import EmbeddingFiller, use_model
from memory.places import Visibility
from memory.search import Page, Query, search_messages, search_passages

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class Person:
    """An agent in one place; `at` is the time of the next thing said, a minute later each time."""

    db: Database
    agent: int
    place: int
    conversation: int
    kind: Visibility
    at: datetime = NOON

    @staticmethod
    async def of(db: Database, user: str = "ana", place: str = "dm-ana", kind: Visibility = "direct") -> "Person":
        """The person of that name in that place, both made if they are new."""
        workspace = "" if kind == "direct" else "club"
        async with db.bare() as connection:
            agent = await value(connection, "SELECT agent_of('discord', '', %s, %s, NULL, 'UTC')", (user, user.title()))
            spot = await value(
                connection, "SELECT place_of('discord', '', %s, %s, %s, %s, NULL, %s)", (workspace, place, kind, place, agent)
            )
            talk = await value(connection, "SELECT conversation_of(%s, %s)", (agent, spot))
        return Person(db, agent, spot, talk, kind)

    def here(self) -> AbstractAsyncContextManager[Connection]:
        """A transaction in which this person's agent acts in this place."""
        return self.db.agent(self.agent, self.place)

    async def say(
        self, *texts: str, role: messages.Role = "user", kind: messages.Kind = "message", author: str = "Ana"
    ) -> list[int]:
        """Say things one after another; their message ids."""
        made = []
        for text in texts:
            async with self.here() as connection:
                draft = messages.Draft(role, kind, text, author_name=author)
                made += await messages.append(connection, self.conversation, [draft], visibility=self.kind, at=self.at, turn=None)
            self.at += timedelta(minutes=1)
        return [message.id for message in made]

    async def store(self, content: str, *, tags: Sequence[str] = (), shareable: bool = False) -> archival_storage.Stored:
        """Put a text into archival storage."""
        async with self.here() as connection:
            stored = await archival_storage.insert(
                connection,
                agent=self.agent,
                place=self.place,
                visibility=self.kind,
                content=content,
                at=self.at,
                tags=tags,
                shareable=shareable,
            )
        self.at += timedelta(minutes=1)
        return stored

    async def recall(self, text: str, vector: QueryVector | None = None, **how: object) -> Page:
        """Search recall storage from here."""
        async with self.here() as connection:
            return await search_messages(connection, Query(text, **how), vector)  # type: ignore[arg-type]

    async def archive(self, text: str, vector: QueryVector | None = None, **how: object) -> Page:
        """Search archival storage from here."""
        async with self.here() as connection:
            return await search_passages(connection, Query(text, **how), vector)  # type: ignore[arg-type]


class ByTopic:
    """A small embedder whose meaning is countable: a dimension a topic, raised by each of the topic's words in a text."""

    name = "topics"
    dims = 8
    floor = 0.3
    topics = ("dog puppy retriever pet", "sea beach coast sailing", "bread cake oven baking", "piano music concert song")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text; the last dimension is what all texts share."""
        return [
            [float(sum(word in topic.split() for word in text.lower().split())) for topic in self.topics] + [0.0, 0.0, 0.0, 0.2]
            for text in texts
        ]


async def understand(db: Database, embedder: Embedder) -> Meaning:
    """Give every row its vector."""
    meaning = await use_model(db, embedder)
    await EmbeddingFiller(db, meaning).fill()
    return meaning


def texts(page: Page) -> list[str]:
    """What a page shows, in order."""
    return [hit.content for hit in page.hits]
