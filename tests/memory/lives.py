"""Random lives: people talk, quote, search, store, set timers, export, link, pause and begin afresh; every word of theirs is known by where it
was said.

Each message of a person has a token that stands nowhere else. The model repeats tokens that it sees wherever a model could: in replies,
thoughts, entries, passages, tags, timers, queries and summaries.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.types.json import Jsonb  # noqa: F401 - adapts

from adapters.base import Changed, Person, PlaceOf, Quote
from bot.engine import changes, timers
from tests.bot.commands.conftest import Desk
from tests.bot.commands.test_linking import linked
from tests.bot.dialogue import Dialogue, seen
from tests.conftest import Urls
from tests.servers.model import Request, Step, call, reply

PEOPLE = {name: Person("console", "", name, name.title()) for name in ("ada", "ben", "eve")}
ALSO = {name: Person("slack", "T1", f"U{name}", name.title()) for name in PEOPLE}
"""The other account of each."""
TOKEN = re.compile(r"zq[a-z]{8}")
SAYINGS = (
    "We met {} at the harbour.",
    "Please remember {}.",
    "{} is what I had for lunch.",
    "My cousin calls it {}.",
    "What about {}?",
    "Remind me of {} in an hour.",
)
ASKING = re.compile(r"Remind me of zq[a-z]{8} in an hour\.")
FILLER = " The tide came in and went out, and the boats rose and sank with it." * 6


class Model:
    """Repeats what it sees, at random."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def __call__(self, request: Request) -> Step:
        tokens = list(dict.fromkeys(TOKEN.findall(seen(request))))
        if not request.functions:
            return reply("They spoke of " + ", ".join(tokens[-12:]) + ".")
        newest = list(dict.fromkeys(TOKEN.findall(str(request.messages[-1].get("content", "")))))
        if request.messages[-1]["role"] == "tool":
            return reply("I found " + " and ".join(self._some(newest or tokens)) + ".")
        told = self._some(newest or tokens, 1) + (self._some(tokens, 1) if self.chance.random() < 0.4 else [])
        words = " ".join(told) or "nothing"
        match self.chance.randrange(9):
            case 0:
                return reply(
                    "Noted.", call("working_context_append", section="key_facts", content=f"It was {words} then.", reason=words)
                )
            case 1:
                return reply(f"Kept {words}.", call("archival_storage_insert", content=f"They said {words}.", tags=told[:1]))
            case 2:
                return reply(None, call("recall_storage_search", query=words, request_heartbeat=True))
            case 3:
                asked = ASKING.findall(str(request.messages[-1].get("content", "")))[-1:]
                minutes = 60 if asked else self.chance.randrange(5, 60)
                timer = call(
                    "set_timer", purpose=f"ask about {words}", in_minutes=minutes, **({"asked": asked[0]} if asked else {})
                )
                return reply("I will.", timer)
            case 4:
                return reply(None, call("archival_storage_search", query=words, request_heartbeat=True))
            case _:
                return reply(f"Ah, {words}." if self.chance.random() < 0.7 else "I see.")

    def _some(self, tokens: list[str], most: int = 2) -> list[str]:
        return self.chance.sample(tokens, min(len(tokens), most))


@dataclass(slots=True)
class Said:
    """A message of a person's, with what it alone says."""

    user: str
    place: str
    token: str
    id: int
    platform_id: str


@dataclass
class Life:
    """One life as it goes. `said` are the messages that were kept."""

    desk: Desk
    urls: Urls
    chance: random.Random
    said: list[Said] = field(default_factory=list)
    texts: dict[str, list[Quote]] = field(default_factory=dict)
    """What a channel shows: the messages and replies in it."""
    linked: set[str] = field(default_factory=set)

    def talk(self, user: str, place: str) -> Dialogue:
        one = self.desk.talk
        if place == "other":
            return replace(one, person=ALSO[user], place=PlaceOf("slack", "T1", "T1", f"dm-{user}", "direct"))
        if place == "direct":
            return one.elsewhere(user, "direct", workspace="", person=PEOPLE[user])
        return one.elsewhere(place, "public", person=PEOPLE[user])

    def token(self) -> str:
        return "zq" + "".join(self.chance.choices("abcdefghijklmnoprstuvwy", k=8))

    async def live(self, steps: int) -> None:
        """So many things happen, one after another."""
        for _ in range(steps):
            user = self.chance.choice(list(PEOPLE))
            own = ("direct", "other") if user in self.linked else ("direct",)
            place = self.chance.choice((*own, "pier", "pier", "market"))
            match self.chance.randrange(16):
                case 0:
                    await self.desk.type("/fresh", self.talk(user, place))
                case 1:
                    self.desk.talk.clock[0] += timedelta(minutes=30)
                    await self.fire()
                case 2:
                    await self.desk.type("/memory export", self.talk(user, "direct"))
                case 3:
                    await self.edit()
                case 4 if not self.linked:
                    await self.link(user)
                case 5:
                    await self.pause(user)
                case _:
                    await self.say(user, place)
        await self.fire()

    async def link(self, user: str) -> None:
        """Somebody's other account, with memory of its own, becomes one with theirs; what either knows may cross, or not."""
        await self.say(user, "other")
        await linked(self.desk, self.talk(user, "direct"), self.talk(user, "other"))
        self.linked.add(user)
        await self.desk.type(f"/settings cross {self.chance.choice(('on', 'off'))}", self.talk(user, "direct"))

    async def pause(self, user: str) -> list[Said]:
        """What is said in a pause; the answer to the last of it is owed when the pause ends."""
        await self.desk.type("/memory pause", self.talk(user, "direct"))
        passing = [await self.say(user, place, kept=False) for place in ("direct", "pier", "direct")]
        await self.desk.type("/memory resume", self.talk(user, "direct"))
        await self.sent("")
        return passing

    async def say(self, user: str, place: str, *, kept: bool = True) -> Said:
        """A message with its turn; in a channel it may bring along what was said before."""
        talk, token = self.talk(user, place), self.token()
        text = self.chance.choice(SAYINGS).format(token) + (FILLER if self.chance.random() < 0.4 else "")
        alone = place in ("direct", "other")
        shown = [] if alone else self.texts.setdefault(place, [])
        quotes = () if alone else tuple(self.chance.sample(shown, min(len(shown), self.chance.randrange(4))))
        quotes = tuple(quote for quote in quotes if quote.author_id != talk.person.author_id)
        await talk.hear(text, quotes=quotes)
        [row] = await talk.rows(
            "SELECT id, platform_id FROM messages WHERE content LIKE %s AND kind = 'message' AND role = 'user'", (f"%{token}%",)
        )
        said = Said(user, place, token, int(str(row["id"])), str(row["platform_id"]))
        if kept:
            self.said.append(said)
        if not alone and kept:
            shown.append(Quote(talk.person.author_id, talk.person.name, text, "context", f"{place}/{said.platform_id}"))
        if not alone:
            shown += [Quote("console::mika", "Mika", body, "reply", origin) for origin, body in await self.sent(place) if body]
        return said

    async def sent(self, place: str) -> list[tuple[str, str]]:
        """The platform shows the replies that wait; those of one channel, with where they stand."""
        async with await psycopg.AsyncConnection.connect(self.urls.owner, options="-c search_path=keepsake,public") as owner:
            cursor = await owner.execute(
                "UPDATE outbox SET state = 'sent', platform_id = 'p' || id WHERE state = 'waiting' RETURNING channel, platform_id, body"
            )
            return [(f"{channel}/{id_}", body) for channel, id_, body in await cursor.fetchall() if channel == place]

    async def fire(self) -> None:
        """What is due is said."""
        db = self.desk.talk.db
        await timers.fire_due(db, self.desk.talk.at)
        for user in PEOPLE:
            for row in await self.talk(user, "direct").rows(
                "SELECT DISTINCT agent_id FROM events WHERE status = 0 AND origin = 'timed'"
            ):
                talk = self.talk(user, "direct")
                while await talk.rows("SELECT 1 FROM events WHERE status = 0"):
                    await talk.agent.turn(await talk.claim(int(str(row["agent_id"]))))
        await self.sent("")

    async def edit(self) -> str | None:
        """Somebody edits a message of theirs; returns the token that is no longer said."""
        if not self.said:
            return None
        said, new = self.chance.choice(self.said), self.token()
        talk = self.talk(said.user, said.place)
        [row] = await talk.rows("SELECT content FROM messages WHERE id = %s", (said.id,))
        text = str(row["content"]).replace(said.token, new)
        await self.change(said, text)
        old, said.token = said.token, new
        shown = self.texts.get(said.place, [])
        shown[:] = [quote for quote in shown if old not in quote.text]
        return old

    async def change(self, said: Said, text: str | None) -> None:
        """The platform tells that a message was edited, or deleted (None)."""
        talk = self.talk(said.user, said.place)
        place = talk.place
        changed = Changed(place.platform, place.realm, place.external_id, (said.platform_id,), text, talk.at)
        await changes.follow(talk.db, talk.cache, changed)

    async def standing(self, tokens: set[str]) -> dict[str, set[str]]:
        """The tables (and Redis) in which any of these stand, with which."""
        found: dict[str, set[str]] = {}
        async with await psycopg.AsyncConnection.connect(self.urls.owner) as owner:
            cursor = await owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'keepsake'")
            for (table,) in await cursor.fetchall():
                rows = await (
                    await owner.execute(f"SELECT t::text FROM keepsake.{table} t WHERE t::text LIKE '%zq%'".encode())
                ).fetchall()
                if here := {token for (text,) in rows for token in TOKEN.findall(text)} & tokens:
                    found[table] = here
        if await self.desk.talk.cache.holding(list(tokens), None):
            found["redis"] = tokens
        return found


def plain(found: dict[str, Any]) -> dict[str, list[str]]:
    """For an assertion that says what is left."""
    return {table: sorted(tokens) for table, tokens in found.items()}
