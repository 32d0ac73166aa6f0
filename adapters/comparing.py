"""What changed while nobody listened: the known channels, compared with what their platform shows now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from adapters.base import Bot, PlaceOf

Look = Callable[[PlaceOf], Awaitable[PlaceOf | None]]
"""How a known channel is now; None, or a place without a kind: its platform does not say."""


async def compare(bot: Bot, platform: str, look: Look) -> None:
    """Tell the bot of every known channel that is another now. What cannot be seen stays as it is known."""
    for known in await bot.channels(platform):
        shown = await look(known)
        if shown is not None and shown.kind is not None and shown != known:
            await bot.place_changed(shown)
