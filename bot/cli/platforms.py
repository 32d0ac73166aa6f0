"""`bot discord invite` and `bot slack manifest`."""

import asyncio
from typing import Annotated

import typer

from bot.cli.shared import settings

discord = typer.Typer(help="Discord: the link that lets the bot into a server.", no_args_is_help=True)


@discord.callback()
def discord_group() -> None:
    """Discord: the link that lets the bot into a server."""


@discord.command(epilog="Example: bot discord invite")
def invite(context: typer.Context) -> None:
    """Print the link under which the bot is invited into a server (a guild)."""
    from bot.app.discord import invite_link

    typer.echo(asyncio.run(invite_link(settings(context))))


slack = typer.Typer(help="Slack: the manifest to make the app from.", no_args_is_help=True)


@slack.callback()
def slack_group() -> None:
    """Slack: the manifest to make the app from."""


@slack.command(epilog="Example: bot slack manifest   or   bot slack manifest --url https://keepsake.example.com")
def manifest(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Option(help="Where Slack reaches the bot over HTTP; slack.public_url without it, and Socket Mode without both."),
    ] = "",
) -> None:
    """Print the manifest to paste where Slack makes apps (api.slack.com/apps, Create New App, From a manifest)."""
    from bot.app.slack import manifest_text

    typer.echo(manifest_text(settings(context), url))
