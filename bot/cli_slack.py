"""`bot slack manifest`."""

from typing import Annotated

import typer

from bot.cli_common import settings

slack = typer.Typer(help="Slack: the manifest to make the app from.", no_args_is_help=True)


@slack.callback()
def group() -> None:
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
    from bot.platforms import slack_manifest

    typer.echo(slack_manifest(settings(context), url))
