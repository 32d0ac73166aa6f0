"""Messages, edits, deletions, joins and logins on their way in: each channel in order, channels side by side.

An event is acknowledged when the coroutine that takes it has ended, and Slack waits three seconds. So what is asked of Slack beside it
(names, context, files) has a deadline, runs from the event's arrival on, and is left out when it is late; the content of a late file
follows as a correction.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import aiohttp

from adapters.base import Bot, Changed, Image, Incoming, Person, PlaceOf, Quote
from adapters.catalogue import say
from adapters.files import File, described
from adapters.guard import PairGuard
from adapters.slack import files
from adapters.slack.names import PLATFORM, key_of, moment, place_of, spot, spots_of, stamp, thread_of
from adapters.slack.people import People, Profile, person_of
from adapters.slack.quotes import Quotes
from adapters.slack.rooms import UNKNOWN, Room, Rooms, kind_said
from adapters.slack.settings import Settings
from adapters.slack.texts import mentioned, names_from, readable
from adapters.slack.triggers import facts_of, is_stranger
from adapters.slack.written import Written
from adapters.triggers import Heard, decide
from adapters.turnstile import Turnstile

log = logging.getLogger(__name__)
T = TypeVar("T")

DEADLINE = 1.5
"""Seconds after an event's arrival that anything asked of Slack for it may take."""
FOR_IDENTITY = 10.0
"""The same for who somebody is on Enterprise Grid: a guess would make a second agent."""
LATE_FILES = 30.0
REMEMBERED = 20_000
AGAIN = (3.0, 12.0)
"""Seconds after which a deletion is followed again: another process may be taking the message in just now, for at most `FOR_IDENTITY`."""
LATE_MENTION = timedelta(hours=1)
"""How old a message may be that is edited to address the bot."""


class NotNow(Exception):
    """The event cannot be taken now; Slack is not acknowledged and tells it again."""


Tell = Callable[[Written, str], Coroutine[Any, Any, None]]
"""Says something to one person alone where they wrote."""


class Inbound:
    """Takes in what concerns the bot. `count` is told the reason of every decision; `line` runs what is a command, if it is one."""

    def __init__(
        self,
        settings: Settings,
        bot: Bot,
        people: People,
        rooms: Rooms,
        session: aiohttp.ClientSession,
        count: Callable[[str], None],
        tell: Tell,
        line: Callable[[Written, PlaceOf, str], bool],
    ) -> None:
        self._settings, self._bot, self._people, self._rooms = settings, bot, people, rooms
        self._session, self._count, self._tell, self._line = session, count, tell, line
        self._quotes = Quotes(settings.context_messages, people)
        self._guard = PairGuard()
        self._strangers: set[str] = set()
        self._taking: dict[str, asyncio.Task[None]] = {}
        self._done: OrderedDict[str, bool] = OrderedDict()
        self._deleted_keys: OrderedDict[str, None] = OrderedDict()
        self._threads: OrderedDict[str, None] = OrderedDict()
        self._background: set[asyncio.Task[None]] = set()
        self.turnstile = Turnstile()
        self._ending = asyncio.Event()
        self.last_by: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Of each place, the last message that was taken there: its id and its author."""

    def follow(self, place: str) -> None:
        """The bot takes part in a thread."""
        self._threads[place] = None
        while len(self._threads) > REMEMBERED:
            self._threads.popitem(last=False)

    async def message(self, written: Written) -> None:
        """One message, in whichever of its forms it comes. Returns when it is in the inbox, or when it need not be."""
        if written.own:
            if thread := written.event.get("thread_ts"):
                self.follow(spot(written.channel, str(thread)))
            return self._count("slack_ignored_own_message")
        key = key_of(written.scope, written.channel, stamp(written.event))
        while (other := self._taking.get(key)) is not None:
            await asyncio.shield(other)
        if key in self._done:
            self._count("slack_again")
            return await self._twin(written, key)
        # The other form may have been ignored, as before an edit that first names the bot: then this one counts.
        task = self._taking[key] = asyncio.create_task(self._in_turn(written, key), name="slack message")
        return await asyncio.shield(task)

    async def _twin(self, written: Written, key: str) -> None:
        """The other form of a message that was taken. One may have the files that the other lacked."""
        if written.event.get("files") and self._done.get(key) is False:
            self._done[key] = True
            await self._retold(written)

    async def _in_turn(self, written: Written, key: str) -> None:
        room = asyncio.ensure_future(self.room(written))
        profile = asyncio.ensure_future(self._profile(written))
        profile.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may need it
        try:
            async with self.turnstile.through((written.workspace.key, written.channel)):
                found = await room
                if self._rooms.changed(written.channel, since=written.arrived):  # while the message waited
                    found = await self.room(written)
                taken = await self._take(written, key, found, profile)
        finally:
            for task in (room, profile):
                task.cancel()
            # Here and not when the task has ended: whoever finds one that has would wait for it for ever, without letting anything else run.
            self._taking.pop(key, None)
        if taken is not None:
            self._done[key] = taken
            while len(self._done) > REMEMBERED:
                self._done.popitem(last=False)

    async def room(self, written: Written) -> Room:
        """The channel; its kind by the event's own word where that is the stricter."""
        said = kind_said(written)
        if said == "direct":
            return Room("direct")
        room = await self._soon(self._rooms.of(written.workspace, written.channel), written, UNKNOWN)
        if said == "private" and room.kind == "public":
            self._rooms.forget(written.channel)
        # Public only where both say so: shared with outsiders is known to conversations.info alone.
        return replace(room, kind="private") if said == "private" else room

    async def _profile(self, written: Written) -> Profile | None:
        asked = self._people.of(written.workspace, written.user)
        if not written.scope.enterprise:
            return await self._soon(asked, written, None)
        profile = await self._soon(asked, written, None, FOR_IDENTITY)
        if profile is None and written.user:
            raise NotNow("who this is on Enterprise Grid is not known")
        return profile

    async def _soon(self, work: Awaitable[T], written: Written, otherwise: T, seconds: float = DEADLINE) -> T:
        try:
            async with asyncio.timeout(max(0.01, written.arrived + seconds - time.monotonic())):
                return await work
        except TimeoutError:
            self._count("slack_late")
            return otherwise

    def _place(self, written: Written, room: Room) -> PlaceOf:
        direct = room.kind == "direct"
        thread = thread_of(written.event, direct=direct, answer_in_thread=self._settings.answer_in_thread)
        workspace = "" if written.scope.team else room.workspace
        return place_of(written.scope, written.channel, thread, room.kind, room.name, workspace)

    def _decision(self, written: Written, room: Room) -> Heard:
        settings, event = self._settings, written.event
        place = spot(written.channel, str(event.get("thread_ts") or "") or None)
        facts = facts_of(
            event,
            written.scope,
            written.me,
            written.workspace.bot_id,
            direct=room.kind == "direct",
            mine=place in self._threads,
            bots=settings.rules.bots,
        )
        decision = decide(facts, settings.rules)
        if facts.author == "person" and facts.ordinary:
            self._guard.person(written.channel)
        elif decision.kind != "ignore" and not self._guard.bot(
            written.channel, facts.author_id, moment(stamp(event)).timestamp()
        ):
            return Heard("ignore", "bot_loop")
        return decision

    async def _take(self, written: Written, key: str, room: Room, profile: asyncio.Future[Profile | None]) -> bool | None:
        """Whether its files were there; None when it was not taken."""
        if key in self._deleted_keys:
            self._count("slack_ignored_deleted")
            return None
        decision = self._decision(written, room)
        if decision.kind == "ignore":
            self._count(f"slack_ignored_{decision.reason}")
            return None
        who = await profile
        home = is_stranger(written.event, written.scope)
        if home and who is not None and written.scope.enterprise and who.grid == written.scope.enterprise:
            home = ""
        if home and not self._settings.strangers:
            self._count("slack_ignored_stranger")
            if decision.kind == "answer" and written.user not in self._strangers:
                self._strangers.add(written.user)
                self._later(self._tell(written, say("platform.stranger", who.locale if who else None)))
            return None
        person = person_of(written.scope, written.user or str(written.event.get("bot_id") or ""), who, home)
        place = self._place(written, room)
        if await self._spent(written, person):
            return None
        words = await self._words(written)
        if decision.kind == "answer" and not written.event.get("files") and self._line(written, place, words):
            self._count("slack_command")
            return True
        return await self._accept(written, key, decision, person, place, words)

    async def _accept(self, written: Written, key: str, decision: Heard, person: Person, place: PlaceOf, words: str) -> bool:
        event, ts = written.event, stamp(written.event)
        attached = await self._soon(files.files_of(event, written.workspace), written, [])
        reading = asyncio.create_task(self._file_lines(written, attached), name="slack files")
        looking = asyncio.create_task(self._pictures(written, attached), name="slack pictures")
        none: tuple[Quote, ...] = ()
        quotes = await self._soon(
            self._quotes.of(
                written.workspace, written.scope, event, me=written.me, direct=place.kind == "direct", place=place.external_id
            ),
            written,
            none,
        )
        lines = await self._soon(asyncio.shield(reading), written, None)
        unseen: tuple[Image, ...] = ()
        pictures = await self._soon(looking, written, unseen)
        shown = lines if lines is not None else [described(one) for one in attached]
        text = "\n".join(line for line in (words, *shown) if line)
        if not text and quotes:
            text = "(forwards a message)"
        incoming = Incoming(
            "message",
            person,
            place,
            key=key,
            at=moment(ts),
            text=text,
            message_id=ts,
            addressed=decision.kind == "answer",
            quotes=quotes,
            images=pictures,
        )
        fresh = await self._bot.receive(incoming)
        self._quotes.taken(place.external_id, written.user, ts)
        self._remember(place.external_id, ts, written.user)
        if place.parent:
            self.follow(place.external_id)
        if fresh:
            self._count(f"slack_{decision.reason}")
        if lines is None:
            self._later(self._correct_late(written, words, reading))
        return bool(event.get("files"))

    def _remember(self, place: str, ts: str, user: str) -> None:
        self.last_by[place] = ts, user
        self.last_by.move_to_end(place)
        while len(self.last_by) > REMEMBERED:
            self.last_by.popitem(last=False)

    async def _spent(self, written: Written, person: Person) -> bool:
        """Whether nothing more is taken of this person today, by the workspace's limit or the general one."""
        limit = self._settings.daily_limits.get(written.scope.workspace, self._settings.daily_limit)
        now = datetime.now(UTC)
        if not limit or await self._bot.taken(person, "message", now.replace(hour=0, minute=0, second=0, microsecond=0)) < limit:
            return False
        self._count("slack_ignored_daily_limit")
        if line := await self._bot.tell_limit(person, now):
            self._later(self._tell(written, line))
        return True

    async def _words(self, written: Written) -> str:
        """The person's own words."""
        text = str(written.event.get("text") or "")
        ids = [user for user in mentioned(text) if user != written.me]
        names = await self._soon(self._people.names(written.workspace, ids), written, {})
        return readable(text, names_from(names), me=written.me)

    async def _file_lines(self, written: Written, attached: list[File]) -> list[str]:
        try:
            async with asyncio.timeout(LATE_FILES):
                return await files.told(
                    attached, self._settings.attachment_bytes, written.workspace, self._session, self._settings.api_base
                )
        except TimeoutError:
            return [described(one) for one in attached]

    async def _pictures(self, written: Written, attached: list[File]) -> tuple[Image, ...]:
        settings = self._settings
        return await files.seen(attached, settings.image_bytes, written.workspace, self._session, settings.api_base)

    async def _correct_late(self, written: Written, words: str, reading: asyncio.Future[list[str]]) -> None:
        lines = await reading
        text = "\n".join(line for line in (words, *lines) if line)
        await self._change(written, text)

    async def _retold(self, written: Written) -> None:
        """The message as it is now, as a correction; the content of a late file follows."""
        words = await self._words(written)
        attached = await self._soon(files.files_of(written.event, written.workspace), written, [])
        reading = asyncio.create_task(self._file_lines(written, attached), name="slack files")
        lines = await self._soon(asyncio.shield(reading), written, None)
        shown = lines if lines is not None else [described(one) for one in attached]
        await self._change(written, "\n".join(line for line in (words, *shown) if line))
        if lines is None:
            self._later(self._correct_late(written, words, reading))

    async def _change(self, written: Written, text: str | None) -> None:
        """The message has another text now, or (None) is gone."""
        ids, now, mark = (stamp(written.event),), datetime.now(UTC), text is None and self._settings.mark_deleted
        for place in spots_of(written.event):
            await self._bot.changed(Changed(PLATFORM, written.scope.realm, place, ids, text, now, mark=mark))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="slack background")
        self._background.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("something beside a message failed: %s", type(error).__name__)

    async def edited(self, written: Written) -> None:
        """An edit by a person; what Slack itself changes (unfurled links) is none. One that first addresses the bot is taken as new."""
        event = written.event
        now_is, was = event.get("message") or {}, event.get("previous_message") or {}
        if now_is.get("subtype") == "tombstone":
            return await self._deleted(written, was)
        edited = now_is.get("edited") and now_is["edited"] != was.get("edited") and now_is.get("text") != was.get("text")
        # Of a file that somebody deleted, Slack tells by a change without an edit.
        if not edited and files.there(now_is) >= files.there(was):
            return None
        if now_is.get("bot_id") or now_is.get("user") == written.me:
            return None
        whole = {**now_is, "channel": written.channel, "channel_type": event.get("channel_type")}
        inner = replace(written, event=whole)
        async with self.turnstile.through((written.workspace.key, written.channel)):
            room = await self.room(inner)
            await self._retold(inner)
            self._count("slack_edited")
            late = moment(stamp(whole)) <= datetime.now(UTC) - LATE_MENTION
            before = {**was, "channel": written.channel, "channel_type": event.get("channel_type")}
            first = (
                self._decision(inner, room).kind == "answer"
                and self._decision(replace(inner, event=before), room).kind != "answer"
            )
        if first and not late and room.kind != "direct":
            await self.message(inner)
        return None

    async def deleted(self, written: Written) -> None:
        """A message is gone, by whose hand does not matter."""
        before = dict(written.event.get("previous_message") or {})
        await self._deleted(written, {**before, "ts": written.event.get("deleted_ts") or before.get("ts")})

    async def _deleted(self, written: Written, before: Mapping[str, Any]) -> None:
        whole = {**before, "channel": written.channel, "channel_type": written.event.get("channel_type")}
        inner = replace(written, event=whole)
        key = key_of(written.scope, written.channel, stamp(whole))
        async with self.turnstile.through((written.workspace.key, written.channel)):
            # Slack tells what was not acknowledged again, also after its deletion.
            self._deleted_keys[key] = None
            while len(self._deleted_keys) > REMEMBERED:
                self._deleted_keys.popitem(last=False)
            await self._change(inner, None)
        self._count("slack_deleted")
        if key not in self._done and not self._settings.mark_deleted:
            self._later(self._delete_again(inner))

    async def _delete_again(self, written: Written) -> None:
        """The deletion of what this process did not take in, for another that may have been at it; at once when this one ends."""
        began = time.monotonic()
        for after in AGAIN:
            with suppress(TimeoutError):
                async with asyncio.timeout(began + after - time.monotonic()):
                    await self._ending.wait()
            await self._change(written, None)
            if self._ending.is_set():
                return

    async def settle(self, seconds: float) -> None:
        """Let what is being taken come to its end."""
        self._ending.set()
        waiting = [*self._taking.values(), *self._background]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for task in late:
                task.cancel()
