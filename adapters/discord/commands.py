"""Slash commands and pressed buttons: made from the bot's commands, acknowledged first, answered for the asker's eyes alone."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import discord
from discord import app_commands

from adapters.base import Answer, Bot
from adapters.catalogue import in_every_language, say
from adapters.discord import buttons
from adapters.discord.names import author_id, person_of, place_of, role_ids
from adapters.discord.settings import LIMIT
from adapters.text import split

log = logging.getLogger(__name__)

MESSAGES = 3
"""The most messages of one answer; a longer one comes as a file."""
UNKNOWN_INTERACTION, ALREADY_ACKNOWLEDGED = 10062, 40060
BARE = "show"
"""The subcommand of a command that is a group as well, as Discord offers no group to be run itself."""

Run = Callable[["discord.Interaction[Any]", str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Slash:
    """A command by its one to three words, what it does, and an example of what may follow it (empty: nothing).

    `restricted`: Discord shows it to those alone who manage the guild, unless its admins choose otherwise. `line`: the catalogue's line
    of what it does, which Discord shows in the reader's language.
    """

    name: str
    does: str
    example: str = ""
    restricted: bool = False
    line: str = ""


class Translator(app_commands.Translator):
    """What commands do, in the languages of the catalogue."""

    async def translate(
        self, string: app_commands.locale_str, locale: discord.Locale, _: app_commands.TranslationContextTypes
    ) -> str | None:
        """A description in a language of Discord's; None where the catalogue has it in English alone."""
        line = string.extras.get("line")
        told = in_every_language(line).get(locale.value.partition("-")[0]) if line else None
        return told[:100] if told else None


def tree_of(client: discord.Client, slashes: Sequence[Slash], answer: Run) -> app_commands.CommandTree[discord.Client]:
    """The commands, for guilds and direct messages with the bot."""
    tree = app_commands.CommandTree(
        client,
        allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=True, private_channel=False),
        allowed_installs=app_commands.AppInstallationType(guild=True, user=True),
    )
    groups: dict[tuple[str, ...], app_commands.Group] = {}
    holding = {tuple(slash.name.split()[:length]) for slash in slashes for length in range(1, len(slash.name.split()))}
    restricted = {slash.name.split()[0] for slash in slashes if slash.restricted}
    only = discord.Permissions(manage_guild=True)

    def group(path: tuple[str, ...]) -> app_commands.Group:
        if path not in groups:
            about = say("platform.admin_group" if path[0] in restricted else "platform.group", None, command=" ".join(path))
            if len(path) > 1:
                groups[path] = app_commands.Group(name=path[-1], description=about, parent=group(path[:-1]))
            else:
                groups[path] = app_commands.Group(name=path[0], description=about)
                groups[path].default_permissions = only if path[0] in restricted else None
                tree.add_command(groups[path])
        return groups[path]

    for slash in slashes:
        words = tuple(slash.name.split())
        words = (*words, BARE) if words in holding else words
        command = _command(words[-1], slash, answer)
        if len(words) > 1:
            group(words[:-1]).add_command(command)
        else:
            command.default_permissions = only if slash.restricted else None
            tree.add_command(command)
    return tree


def _command(name: str, slash: Slash, answer: Run) -> app_commands.Command[Any, ..., None]:
    async def plain(interaction: discord.Interaction) -> None:
        await answer(interaction, f"/{slash.name}")

    async def with_text(interaction: discord.Interaction, text: str = "") -> None:
        await answer(interaction, f"/{slash.name} {text}".strip())

    callback: Any = plain
    if slash.example:
        callback = app_commands.describe(text=say("platform.example", None, line=slash.example)[:100])(with_text)
    return app_commands.Command(
        name=name, description=app_commands.locale_str(slash.does[:100], line=slash.line), callback=callback
    )


async def sync(tree: app_commands.CommandTree[discord.Client], application: int, record: Path | None) -> bool:
    """Tell Discord the commands if they are not those it was told last, which `record` keeps; returns whether it was told."""
    translator = Translator()
    await tree.set_translator(translator)
    payload = [await command.get_translated_payload(tree, translator) for command in tree.get_commands()]
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

    async def pressed(self, interaction: discord.Interaction[Any]) -> None:
        """A button of ours, or the modal in which it asked; anything else is left alone."""
        if interaction.type not in (discord.InteractionType.component, discord.InteractionType.modal_submit):
            return
        data: dict[str, Any] = dict(interaction.data or {})
        name = str(data.get("custom_id") or "")
        button = buttons.pressed(name)
        if button is None:
            return
        act: Awaitable[object]
        asks = interaction.type is discord.InteractionType.component and button.ask and interaction.user.id == button.user
        if asks:
            act = interaction.response.send_modal(
                buttons.question(
                    button, name, _label(interaction, name) or say("platform.one_more_thing", str(interaction.locale))
                )
            )
        else:
            act = self.answer(interaction, f"{button.line} {buttons.typed(data)}".strip(), made_for=author_id(button.user))
        # Whatever it raises: the person is told, as with a slash command.
        for outcome in await asyncio.gather(act, return_exceptions=True):
            if isinstance(outcome, Exception):
                await self._broke_off(interaction, outcome)

    async def answer(self, interaction: discord.Interaction[Any], line: str, *, made_for: str | None = None) -> None:
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
        person = person_of(interaction.user, str(interaction.locale), role_ids(interaction.user))
        said = await self._bot.command(person, place, line, made_for=made_for)
        await _tell(interaction, said or Answer(say("platform.done", person.locale)), late=late)

    async def failed(self, interaction: discord.Interaction[Any], error: app_commands.AppCommandError) -> None:
        """A body raised: the person is told that much, the log the class."""
        await self._broke_off(interaction, error.original if isinstance(error, app_commands.CommandInvokeError) else error)

    async def _broke_off(self, interaction: discord.Interaction[Any], cause: Exception) -> None:
        log.error("a command broke off: %s", type(cause).__name__, exc_info=cause)
        try:
            await _tell(interaction, Answer(say("platform.failed", str(interaction.locale))), late=False)
        except (discord.DiscordException, OSError) as again:
            log.info("nobody could be told: %s", type(again).__name__)


def _label(interaction: discord.Interaction[Any], name: str) -> str:
    """What stands on a pressed button."""
    rows = interaction.message.components if interaction.message is not None else []
    found = [
        one for row in rows if isinstance(row, discord.ActionRow) for one in row.children if getattr(one, "custom_id", "") == name
    ]
    return str(getattr(found[0], "label", "") or "") if found else ""


async def _tell(interaction: discord.Interaction[Any], answer: Answer, *, late: bool) -> None:
    """The answer; one that came too late to be acknowledged goes into a direct message."""
    if late:
        await show(interaction.user.send, answer, interaction.user.id, str(interaction.locale))
    else:
        send = partial(interaction.followup.send, ephemeral=True)
        await show(send, answer, interaction.user.id, str(interaction.locale))


async def show(send: Callable[..., Awaitable[object]], answer: Answer, user: int, locale: str | None = None) -> None:
    """Send an answer to the user it is for, in parts or as a file, its buttons under the last."""
    text, view = buttons.shown(answer, user)
    parts = split(text, LIMIT) or [say("platform.done", locale)]
    last: dict[str, Any] = {} if view is None else {"view": view}
    if len(parts) > MESSAGES:
        file = discord.File(io.BytesIO(text.encode("utf-8", "replace")), "answer.md")
        await send(say("platform.long", locale), file=file, **last)
        return
    for part in parts[:-1]:
        await send(part)
    await send(parts[-1], **last)
