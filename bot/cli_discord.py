"""`bot discord invite`."""

import asyncio

import typer

from bot.cli_common import settings

discord = typer.Typer(help="Discord: the link that lets the bot into a server.", no_args_is_help=True)


@discord.callback()
def group() -> None:
    """Discord: the link that lets the bot into a server."""


@discord.command(epilog="Example: bot discord invite")
def invite(context: typer.Context) -> None:
    """Print the link under which the bot is invited into a server (a guild)."""
    from bot.platforms import discord_invite

    typer.echo(asyncio.run(discord_invite(settings(context))))
