"""What a command is run with: the bot's parts, and who asks where."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, tzinfo
from pathlib import Path

from psycopg.errors import ForeignKeyViolation
from redis.exceptions import RedisError

from adapters.base import Button, Incoming, Person, PlaceKind, PlaceOf
from adapters.catalogue import date_and_time, say
from bot.commands import access
from bot.config.findings import StartError
from bot.health import Health
from memory.agent_state import zone_of
from memory.cache import Cache
from memory.db import Connection, Database, value
from memory.embedding import QueryVector
from memory.people import find_agent
from memory.spending import Price

NOBODY = "command.nobody"
"""For who has no agent. What others said of theirs is `bot.commands.quoted`."""


LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without those that are mistaken for others: 31 of them."""
CODE = 8
"""Letters of a linking code: 31^8 are more than eight hundred thousand million, tried at most a few times in ten minutes."""


class CommandRefused(Exception):
    """A command that cannot be done, by a line of the catalogue and its values."""

    def __init__(self, line: str, /, **values: object) -> None:
        super().__init__(line)
        self._line, self._values = line, values

    def text(self, locale: str | None) -> str:
        """What the person is told."""
        return say(self._line, locale, **self._values)

    def __str__(self) -> str:
        return self.text(None)


@dataclass(frozen=True, slots=True)
class Parts:
    """The running bot's parts that commands need.

    `accept` takes an event into the inbox. `vector` makes the meaning of a search query (None: words only). `replay` puts one dead
    letter (None: all) back and returns how many. `erasure_key` keys the hashes that an erasure leaves behind. `model` and `embedding`
    are named by /status (`rehearsal`: it is no language model). `admins` names by workspace the ids of users and roles who administer
    it, `admins_see_direct` since when people are told that those see direct messages too. `code` makes the secret part of what links two
    accounts; `wake` has an agent's work taken up when the transaction commits (None: by the sweeper). `hosts` receive what people write
    (empty: this machine). `quiet` are the hours of who chose none of their own; `openers`: the bot may ever write first.
    """

    db: Database
    cache: Cache
    accept: Callable[[Incoming], Awaitable[bool]]
    vector: Callable[[str], Awaitable[QueryVector | None]]
    replay: Callable[[int | None], Awaitable[int]]
    health: Health
    data: Path
    erasure_key: bytes
    operators: tuple[str, ...] = ()
    model: str = ""
    rehearsal: bool = False
    embedding: str = ""
    hosts: tuple[str, ...] = ()
    admins: Mapping[str, Collection[str]] = field(default_factory=dict)
    admins_see_direct: date | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    quiet: str = ""
    openers: bool = True
    wake: Callable[[Connection, int], Awaitable[None]] | None = None
    code: Callable[[], str] = lambda: "".join(secrets.choice(LETTERS) for _ in range(CODE))
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Asking:
    """One use of a command. `agent` is whose memory it is about, None when that person has none yet; `place` the place's id.

    `workspace`: where an admin acts on somebody; None for one's own memory and for an operator at the command line. `locale`: the
    asker's, by which they are answered.
    """

    parts: Parts
    person: Person
    where: PlaceOf
    actor: access.Actor
    agent: int | None
    place: int | None
    argument: str
    workspace: str | None = None
    locale: str = ""

    def say(self, line: str, /, **values: object) -> str:
        """A line of the catalogue in the language of who asks."""
        return say(line, self.locale, **values)

    def counted(self, noun: str, number: int) -> str:
        """`1 timer`, `2 timers`: a noun under `count` in the catalogue, with its number."""
        return self.say(f"count.{noun}", n=number)

    def counts(self, numbers: Mapping[str, int]) -> list[str]:
        """Those that are not nought."""
        return [self.counted(noun, number) for noun, number in numbers.items() if number]

    def when(self, at: datetime, zone: tzinfo) -> str:
        """A time: day and minute, on their clock."""
        return date_and_time(at, zone, self.locale)

    def label(self, kind: str, name: str) -> str:
        """A place in words: `direct message`, or its name as a channel."""
        return self.say("place.direct") if kind == "direct" else f"#{name or 'channel'}"

    def pause_or_resume(self, *, paused: bool) -> Button:
        """The button that ends or begins a pause."""
        if paused:
            return Button(self.say("button.resume"), "/memory resume", "good")
        return Button(self.say("button.pause"), "/memory pause")

    @property
    def kind(self) -> PlaceKind:
        """How widely the answer can be read: what is not known is private."""
        return self.where.kind or "private"

    @property
    def own_direct(self) -> bool:
        """In a direct message, where a person sees all that is theirs."""
        return self.kind == "direct"

    @property
    def about_another(self) -> bool:
        """An operator asks about somebody else: the answer is not for the person whose memory it is."""
        return self.actor.person != self.person.author_id

    def allowed(self, action: access.Action, *, somebody: bool = False) -> access.Verdict:
        """The authoriser's word; `somebody`: about others, before it is known who. Raises CommandRefused."""
        if somebody:
            target = access.Target(workspace=next(iter(self.actor.admin_of), None), somebody=True)
        else:
            target = access.Target(agent=self.agent, own_direct=self.own_direct, workspace=self.workspace)
        verdict = access.may(self.actor, action, target)
        if not verdict.allowed:
            raise CommandRefused(verdict.why)
        return verdict

    @asynccontextmanager
    async def open(self, verdict: access.Verdict) -> AsyncIterator[Connection]:
        """A transaction that sees as much of the memory as the verdict allows. Raises CommandRefused when there is none yet."""
        agent, place = self.known()
        if verdict.workspace is None:
            async with self.parts.db.agent(agent, place, everything=verdict.everything) as connection:
                yield connection
            return
        enter = "SELECT enter_workspace(%s, %s, %s, %s, %s)"
        told = self.parts.admins_see_direct if verdict.direct else None
        since = None if told is None else datetime.combine(told, time(), UTC)
        scope = (agent, self.where.platform, self.where.realm, verdict.workspace, since)
        async with self.parts.db.opened(enter, scope) as (connection, _):
            yield connection

    def known(self) -> tuple[int, int | None]:
        """The agent and the place. Raises CommandRefused when the person has no agent yet."""
        if self.agent is None:
            raise CommandRefused(NOBODY)
        return self.agent, self.place

    async def zone(self) -> tzinfo:
        """The person's time zone."""
        if self.agent is None:
            return UTC
        async with self.parts.db.agent(self.agent) as connection:
            return zone_of(await value(connection, "SELECT timezone FROM agents") or "")


async def person_named(db: Database, name: str) -> tuple[Person, int]:
    """The person an operator means, by `platform:realm:user` or the user's id alone. Raises StartError."""
    async with db.bare() as connection:
        rows = await (await connection.execute("SELECT * FROM people()")).fetchall()
    people = {f"{row['platform']}:{row['realm']}:{row['user_id']}": row for row in rows}
    found = [people[name]] if name in people else [row for row in rows if row["user_id"] == name]
    if len(found) != 1:
        what = "is nobody the bot knows" if not found else "could be several people"
        raise StartError(f"{brief_name(name)} {what}. `bot users` lists them; name one as platform:realm:user.")
    row = found[0]
    return Person(row["platform"], row["realm"], row["user_id"], row["user_id"]), int(row["agent_id"])


def brief_name(name: str) -> str:
    """A name from a command line, on one line."""
    return " ".join(name.split())[:80]


def asking_as_operator(parts: Parts, person: Person, agent: int, actor: access.Actor) -> Asking:
    """An operator's look at a person's memory: all places, files written as on the console."""
    return Asking(parts, person, PlaceOf("console", "", "", "", "direct"), actor, agent, None, "")


async def ask(parts: Parts, person: Person, where: PlaceOf, argument: str) -> Asking:
    """Find out who asks, where. A person without an agent gets none by asking."""
    agent = await find_agent(parts.db, person.platform, person.realm, person.user_id)
    place: int | None = None
    locale = person.locale or ""
    if agent is not None:
        locale = await _locale(parts.db, agent, locale)
        known = (
            where.platform,
            where.realm,
            where.workspace,
            where.external_id,
            where.kind,
            where.name,
            where.parent,
            agent,
            where.closed,
        )
        try:
            async with parts.db.bare() as connection:
                place = await value(connection, "SELECT place_of(%s, %s, %s, %s, %s, %s, %s, %s, %s)", known)
        except ForeignKeyViolation:  # erased while they asked
            agent = None
    operator = access.is_operator(person.author_id, parts.operators)
    administers = access.admin_of(person.user_id, person.roles, where.workspace, parts.admins)
    async with parts.db.bare() as connection:
        # What an admin says of their own workspace does not bind an operator.
        account = (person.platform, person.realm, person.user_id, "" if operator else where.workspace)
        blocked = bool(await value(connection, "SELECT blocked(%s, %s, %s, %s)", account))
    actor = access.Actor(person.author_id, agent, operator, administers, parts.admins_see_direct is not None, blocked)
    return Asking(parts, person, where, actor, agent, place, argument, locale=locale)


async def _locale(db: Database, agent: int, told: str) -> str:
    """A person's locale. What the platform tells with a command counts from now on; Discord tells it at no other time."""
    async with db.agent(agent) as connection:
        kept = str(await value(connection, "SELECT coalesce(locale, '') FROM agents") or "")
        if told and told != kept:
            await connection.execute("UPDATE agents SET locale = %s, version = version + 1", (told,))
    return told or kept


async def uncached(asking: Asking, agents: Sequence[int]) -> str:
    """Before the commit as well as after it: a process that is killed in between leaves nothing in Redis that anybody could use."""
    try:
        for agent in agents:
            await asking.parts.cache.forget(agent)
    except (RedisError, OSError):
        return asking.say("erasing.redis_away")
    return ""
