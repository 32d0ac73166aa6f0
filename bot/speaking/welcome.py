"""Welcomes: who joins reads the operator's words in the place the operator chose, and nothing about them is stored (rule 8).

So this goes past the inbox and the outbox, which would make an agent: the adapter is asked to send at once. What stays for a day is a
keyed hash of the event's key, which names nobody, so that an event that comes twice is welcomed once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.base import Adapter, Incoming, Outgoing, TryLater, Undeliverable
from adapters.text import split
from memory.db import Database, value
from memory.main_context import label
from memory.sanitise import clean

log = logging.getLogger(__name__)

KEPT = timedelta(days=1)
PATIENCE = 30.0
"""Seconds that a platform may ask to wait with a welcome; after more it would come out of the blue."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The operator's words for newcomers; empty: none. `{name}` in them stands for the newcomer's name."""

    db: Database
    text: str
    key: bytes
    adapters: Sequence[Adapter]
    count: Callable[[str], None] = lambda _: None

    async def give(self, joined: Incoming, now: datetime) -> bool:
        """Welcome somebody who joined. False: there is nothing to say, it was said, or it cannot be said here."""
        adapter = next((each for each in self.adapters if each.platform == joined.place.platform), None)
        if not self.text or adapter is None:
            return False
        digest = hmac.digest(self.key, f"welcome {joined.place.platform} {joined.key}".encode(), hashlib.sha256)
        async with self.db.bare() as connection:
            if not await value(connection, "SELECT claim_welcome(%s, %s, %s)", (digest, now + KEPT, now)):
                self.count("welcome_again")
                return False
        said = self.text.replace("{name}", label(clean(joined.person.name)))
        parts = [
            Outgoing(_number(digest, number), joined.place.external_id, part)
            for number, part in enumerate(split(said, adapter.limit))
        ]
        # A platform's library may raise anything; what is not one of the contract's two may have been sent, and is not sent again.
        (failure,) = await asyncio.gather(_send(adapter, parts), return_exceptions=True)
        if failure is None:
            self.count("welcome_given")
            return True
        log.warning("a welcome was not sent: %s", type(failure).__name__)
        self.count("welcome_failed")
        if isinstance(failure, TryLater | Undeliverable):
            async with self.db.bare() as connection:
                await connection.execute("SELECT release_welcome(%s)", (digest,))
        return False


async def _send(adapter: Adapter, parts: Sequence[Outgoing]) -> None:
    for part in parts:
        try:
            await adapter.send(part)
        except TryLater as later:
            if later.seconds > PATIENCE:
                raise
            await asyncio.sleep(later.seconds)
            await adapter.send(part)


def _number(digest: bytes, part: int) -> int:
    """What stands for an outbox id: the same for the same event, and larger than any row's."""
    return (1 << 62) + int.from_bytes(digest[:7], "big") + part
