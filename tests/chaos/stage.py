"""A platform as a chaos run uses it: people who speak and see, and what can go wrong between the bot and the platform."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol

from tests.chaos.snapshots import Said, Shown
from tests.scenarios.running_bot import RunningBot
from tests.servers.discord.faults import Delay, Hold
from tests.servers.model import ScriptedModel
from tests.waiting import until

Where = Literal["direct", "channel", "thread"]
PER_CHANNEL = 10
"""People who share a channel, and a thread in it."""
BACK = 60.0
"""Seconds in which a bot whose session broke has to have another one."""
POSTS = 10.0
"""Seconds in which posts come whose answers are to be lost."""
ON_ITS_WAY = 1.0
"""Seconds after an answer within which a call for "is typing" may still come in: it was on its way."""


class Stage(Protocol):
    """Discord or Slack with its people, made by `open_stage`. `everywhere`: whether every process of the bot may face the platform."""

    everywhere: bool

    def bot(self, model: ScriptedModel, data: Path, settings: dict[str, str]) -> RunningBot:
        """A process of the bot here."""
        ...

    def join(self, name: str) -> None:
        """Somebody comes, with direct messages, a channel and a thread to speak in."""
        ...

    def say(self, name: str, where: Where, token: str, text: str) -> Said:
        """They write `token text`, and mention the bot where that is needed."""
        ...

    def command(self, name: str, line: str) -> Awaitable[str]:
        """They give a command; its answer."""
        ...

    async def answered(self, said: Said, timeout: float) -> bool:
        """Waits until the bot's answer to a message is shown somewhere in its channel."""
        ...

    def said(self) -> Sequence[Said]:
        """Everything that was sent, with whether the platform has handed it over or still may."""
        ...

    def shown(self) -> Sequence[Shown]:
        """Everything that the bot posted and that stands."""
        ...

    def typing(self, killed_at: float) -> Sequence[str]:
        """Where a sign that the bot is at work stands although its last answer was given; not what a killed process left."""
        ...

    def late(self) -> Sequence[str]:
        """What was not acknowledged within the platform's deadline."""
        ...

    # Faults.

    async def cut_sessions(self) -> int:
        """The sessions break and may be resumed; how many there were, once as many are back."""
        ...

    async def lose_sessions(self) -> int:
        """They break, and what was said meanwhile does not come over a new one by itself; likewise."""
        ...

    async def lose_answers(self, times: int) -> int:
        """The next posts are carried out, and their answers never arrive; how many there were within a while."""
        ...

    def hold_post(self, token: str) -> Hold:
        """The post that answers a token waits; it is carried out when it is released, unless its sender is gone by then."""
        ...

    def hold_answer(self, token: str) -> None:
        """The post that answers a token is carried out at once, and its sender does not hear of it."""
        ...


NEVER = Delay(3600.0, after=True)
"""Carried out, and not answered as long as anybody waits."""


def group_of(name: str) -> int:
    """The number of the channel in which somebody speaks: some share one."""
    return int(name[1:]) // PER_CHANNEL


async def losing(arm: Callable[[Callable[[object], bool]], None], times: int) -> int:
    """Arms a fault that strikes so many posts, and waits until it has, or nobody posts; how many it struck."""
    posts: list[object] = []

    def strikes(post: object) -> bool:
        if len(posts) < times:
            posts.append(post)
            return True
        return False

    arm(strikes)
    with suppress(TimeoutError):
        await until(lambda: len(posts) >= times, timeout=POSTS)
    return len(posts)
