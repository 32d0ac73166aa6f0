"""Slash commands: made from the list of the bot's commands, acknowledged first, answered for the asker's eyes alone."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import discord
from discord import app_commands

from adapters.base import Bot
from adapters.discord.names import person_of, place_of
from adapters.discord.settings import LIMIT
from adapters.text import split

log = logging.getLogger(__name__)

MESSAGES = 3
"""The most messages of one answer; a longer one comes as a file."""
UNKNOWN_INTERACTION, ALREADY_ACKNOWLEDGED = 10062, 40060
FAILED = "That did not work. Please try again in a moment."

Answer = Callable[["discord.Interaction[Any]", str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Slash:
    """A command by its one or two words, what it does, and an example of what may follow it (empty: nothing)."""

    name: str
    does: str
    example: str = ""


def tree_of(client: discord.Client, slashes: Sequence[Slash], answer: Answer) -> app_commands.CommandTree[discord.Client]:
    """The commands, for guilds and direct messages with the bot."""
    tree = app_commands.CommandTree(
        client,
        allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=True, private_channel=False),
        allowed_installs=app_commands.AppInstallationType(guild=True, user=True),
    )
    groups: dict[str, app_commands.Group] = {}
    for slash in slashes:
        first, _, second = slash.name.partition(" ")
        if not second:
            tree.add_command(_command(first, slash, answer))
            continue
        if first not in groups:
            groups[first] = app_commands.Group(name=first, description=f"Your {first}")
            tree.add_command(groups[first])
        groups[first].add_command(_command(second, slash, answer))
    return tree


def _command(name: str, slash: Slash, answer: Answer) -> app_commands.Command[Any, ..., None]:
    async def plain(interaction: discord.Interaction) -> None:
        await answer(interaction, f"/{slash.name}")

    async def with_text(interaction: discord.Interaction, text: str = "") -> None:
        await answer(interaction, f"/{slash.name} {text}".strip())

    callback: Any = plain
    if slash.example:
        callback = app_commands.describe(text=f"for example: {slash.example}"[:100])(with_text)
    return app_commands.Command(name=name, description=slash.does[:100], callback=callback)


async def sync(tree: app_commands.CommandTree[discord.Client], application: int, record: Path | None) -> bool:
    """Tell Discord the commands if they are not those it was told last, which `record` keeps; returns whether it was told."""
    payload = [command.to_dict(tree) for command in tree.get_commands()]
    digest = hashlib.sha256(json.dumps([application, payload], sort_keys=True).encode()).hexdigest()
    if record is not None and await asyncio.to_thread(_read, record) == digest:
        return False
    await tree.sync()
    if record is not None:
        await asyncio.to_thread(record.write_text, digest + "\n", "utf-8")
    return True


def _read(record: Path) -> str:
    return record.read_text("utf-8").strip() if record.is_file() else ""


class Commands:
    """Answers interactions with the bot's command bodies."""

    def __init__(self, bot: Bot, count: Callable[[str], None]) -> None:
        self._bot, self._count = bot, count

    async def answer(self, interaction: discord.Interaction[Any], line: str) -> None:
        """Acknowledge at once, then run the line. Who may do what is the bot's authoriser's matter, not Discord's."""
        late = False
        try:
            await interaction.response.defer(ephemeral=True, thinking=True)
        except (discord.HTTPException, discord.InteractionResponded) as error:
            code = getattr(error, "code", ALREADY_ACKNOWLEDGED)
            if code != UNKNOWN_INTERACTION:
                self._count("discord_command_elsewhere")
                return  # answered already: a replayed dispatch, or another process
            late = True
            self._count("discord_command_late")
        channel = interaction.channel_id or 0
        place = place_of(interaction.channel, channel, interaction.guild, interaction.guild_id)
        person = person_of(interaction.user, str(interaction.locale))
        said = await self._bot.command(person, place, line)
        await _tell(interaction, said.text if said else "Done.", late=late)

    async def failed(self, interaction: discord.Interaction[Any], error: app_commands.AppCommandError) -> None:
        """A body raised: the person is told that much, the log the class."""
        cause = error.original if isinstance(error, app_commands.CommandInvokeError) else error
        log.error("a slash command broke off: %s", type(cause).__name__, exc_info=cause)
        try:
            await _tell(interaction, FAILED, late=False)
        except (discord.DiscordException, OSError) as again:
            log.info("nobody could be told: %s", type(again).__name__)


async def _tell(interaction: discord.Interaction[Any], text: str, *, late: bool) -> None:
    """The answer, in parts or as a file. One that came too late to be acknowledged goes into a direct message."""
    parts = split(text, LIMIT)
    send: Callable[..., Awaitable[object]] = interaction.user.send if late else interaction.followup.send
    options: dict[str, Any] = {} if late else {"ephemeral": True}
    if len(parts) > MESSAGES:
        file = discord.File(io.BytesIO(text.encode("utf-8", "replace")), "answer.md")
        await send("The answer is long, so it comes as a file.", file=file, **options)
        return
    for part in parts or ["Done."]:
        await send(part, **options)
