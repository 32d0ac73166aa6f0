"""`bot users`, `bot memory`, `bot dead-letters`: the operator acts across people. Every such act is logged where the person sees it."""

import asyncio
import getpass
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from adapters.base import Answer, PlaceOf
from bot.cli.shared import existing, note, settings
from bot.commands import erasing, exporting, quoted
from bot.commands import memory as views
from bot.commands.access import Actor
from bot.commands.context import Asking, Parts, asking_as_operator, person_named
from bot.config.findings import StartError
from bot.config.loading import Loaded
from memory import importing
from memory.db import value
from memory.spending import Limits, Price

memory = typer.Typer(help="See, export, import or delete what is kept of one person.", no_args_is_help=True)
usage = typer.Typer(help="What model calls cost; start a day's budget anew.", no_args_is_help=True)
dead_letters = typer.Typer(help="Messages that could not be answered: list them, put them back.", no_args_is_help=True)
User = Annotated[str, typer.Argument(help="The person as `bot users` shows them: platform:realm:user, or the user's id alone.")]


def with_parts(loaded: Loaded, act: Callable[[Parts], Awaitable[str]]) -> None:
    """Print what an act on the opened services says."""
    from bot.app.modes import operating

    async def go() -> str:
        async with operating(loaded, progress=note) as parts:
            return await act(parts)

    existing(loaded)
    typer.echo(asyncio.run(go()))


def _operator() -> Actor:
    return Actor(f"operator:{getpass.getuser()}", operator=True)


def _on(loaded: Loaded, user: str, action: str, body: Callable[[Asking], Awaitable[str | Answer]]) -> None:
    async def act(parts: Parts) -> str:
        if (person := await quoted.bystander(parts, user)) is not None:
            said = await body(Asking(parts, person, PlaceOf("console", "", "", "", "direct"), _operator(), None, None, ""))
            return said if isinstance(said, str) else said.text
        person, agent = await person_named(parts.db, user)
        asking = asking_as_operator(parts, person, agent, _operator())
        async with parts.db.agent(agent, everything=True) as connection:
            await views.note_act(connection, action, "operator", agent, parts.now())
        said = await body(asking)
        return said if isinstance(said, str) else said.text

    with_parts(loaded, act)


def users(context: typer.Context) -> None:
    """List the people the bot knows, without anything they said."""

    async def act(parts: Parts) -> str:
        async with parts.db.bare() as connection:
            rows = await (await connection.execute("SELECT * FROM people()")).fetchall()
            refused = await (await connection.execute("SELECT * FROM unreachable_people()")).fetchall()
        if not rows:
            return "Nobody yet."
        away = {(row["platform"], row["realm"], row["user_id"]): f"{row['unreachable_since']:%Y-%m-%d %H:%M}" for row in refused}
        return _table(
            ("person", "agent", "since", "unreachable since"),
            [
                (
                    f"{row['platform']}:{row['realm']}:{row['user_id']}",
                    str(row["agent_id"]),
                    f"{row['created_at']:%Y-%m-%d %H:%M}",
                    away.get((row["platform"], row["realm"], row["user_id"]), ""),
                )
                for row in rows
            ],
        )

    with_parts(settings(context), act)


@memory.command("view", epilog="Example: bot memory view console::ada")
def view(context: typer.Context, user: User) -> None:
    """What is remembered about a person."""

    async def every_page(asking: Asking) -> str:
        pages: list[str] = []
        while True:
            said = await views.view(replace(asking, argument=f"page {len(pages) + 1}"))
            pages.append(said.text)
            if not any(button.label == "More" for button in said.buttons):
                return "\n".join(pages)

    _on(settings(context), user, "memory view", every_page)


@memory.command("export", epilog="Example: bot memory export slack:T024BE7LD:U061F7AUR")
def export(context: typer.Context, user: User) -> None:
    """Write everything that is kept of a person as JSON and Markdown into the data folder."""
    _on(settings(context), user, "memory export", exporting.export)


@memory.command("import", epilog="Example: bot memory import ada-20261130.json console::ada")
def bring_in(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The JSON of an export.", exists=True, dir_okay=False)],
    user: Annotated[str, typer.Argument(help="Who gets it, as platform:realm:user; nothing may be kept of them yet.")],
) -> None:
    """Bring an export in again: for a person who was erased, or who comes from another Keepsake."""
    if user.count(":") < 2:
        raise typer.BadParameter("name the person as platform:realm:user")
    try:
        data = json.loads(file.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise StartError(f"{file}: is no JSON that can be read ({type(error).__name__}). Name the .json of an export.") from error

    async def act(parts: Parts) -> str:
        platform, realm, name = user.split(":", 2)
        try:
            agent, counts = await importing.load_for(parts.db, platform, realm, name, data if isinstance(data, dict) else {})
        except importing.NotImported as error:
            raise StartError(f"{file}: cannot be brought in: {error}.") from error
        async with parts.db.agent(agent, everything=True) as connection:
            await views.note_act(connection, "memory import", "operator", agent, parts.now())
        shown = ", ".join(f"{number} {table}" for table, number in counts.items() if number)
        return f"Brought in: {shown or 'nothing'}."

    with_parts(settings(context), act)


@memory.command("delete", epilog="Example: bot memory delete discord::80351110224678912")
def delete(
    context: typer.Context,
    user: User,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether this is meant.")] = False,
) -> None:
    """Erase a person, and prove it."""
    if not yes:
        typer.confirm(f"Erase everything about {user}? This cannot be undone", abort=True)

    async def erase(asking: Asking) -> str:
        if asking.agent is None:
            return (await quoted.forget(asking, sure=True)).text
        return await erasing.erase(asking, asking.agent, "operator")

    _on(settings(context), user, "memory delete", erase)


@dead_letters.command("list", epilog="Example: bot dead-letters list")
def list_letters(context: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 100) -> None:
    """The messages that could not be answered: whose, why, since when; never their text."""

    async def act(parts: Parts) -> str:
        async with parts.db.bare() as connection:
            rows = await (await connection.execute("SELECT * FROM dead_letters(%s)", (limit,))).fetchall()
        if not rows:
            return "No dead letters."
        return _table(
            ("id", "agent", "kind", "from", "attempts", "why", "since"),
            [
                (
                    str(row["event_id"]),
                    str(row["agent_id"]),
                    row["kind"],
                    row["source"],
                    str(row["attempts"]),
                    row["last_error"],
                    f"{row['created_at']:%Y-%m-%d %H:%M}",
                )
                for row in rows
            ],
        )

    with_parts(settings(context), act)


@dead_letters.command("replay", epilog="Example: bot dead-letters replay 17   or   bot dead-letters replay --all")
def replay(
    context: typer.Context,
    letter: Annotated[int | None, typer.Argument(help="The id that `bot dead-letters list` shows.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Put dead letters back in the inbox, to be answered by the running bot or at its next start."""
    if (letter is None) == (not every):
        raise typer.BadParameter("name one id, or --all")

    async def act(parts: Parts) -> str:
        count = await parts.replay(letter)
        if count:
            return f"{count} put back."
        return "No dead letters." if every else "There is no such dead letter."

    with_parts(settings(context), act)


@usage.command("show", epilog="Example: bot usage show --days 7")
def usage_show(context: typer.Context, days: Annotated[int, typer.Option(help="How far back.", min=1, max=3660)] = 1) -> None:
    """What model calls cost in tokens and money, by person and model, and what of today's budgets is taken."""
    loaded = settings(context)
    budget = loaded.config.budget
    limits = Limits(budget.person_tokens, budget.person_money, budget.bot_tokens, budget.bot_money)
    prices = {name: Price(price.prompt, price.cached, price.completion) for name, price in loaded.config.budget.prices.items()}

    async def act(parts: Parts) -> str:
        async with parts.db.bare() as connection:
            since = parts.now() - timedelta(days=days)
            rows = await (await connection.execute("SELECT * FROM usage_since(%s)", (since,))).fetchall()
            openers = await (await connection.execute("SELECT * FROM opener_costs(%s)", (since,))).fetchone()
            spent = await (await connection.execute("SELECT * FROM spent_on(%s)", (parts.now().date(),))).fetchall()
        taken = budget_table(limits, spent) if limits.any else ""
        if not rows:
            return f"No model calls.\n{taken}".rstrip()
        lines = []
        for row in rows:
            price = prices.get(row["model"]) or prices.get("default") or Price()
            money = price.micros(int(row["prompt_tokens"]), int(row["cached_tokens"]), int(row["completion_tokens"])) / 1e6
            numbers = (row["calls"], row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"])
            lines.append(
                (str(row["agent_id"]), row["purpose"], row["model"], *(f"{number:,}" for number in numbers), f"{money:.4f}")
            )
        shown = _table(("agent", "for", "model", "calls", "prompt", "cached", "completion", "money"), lines)
        opened = opener_line(openers) if openers and openers["considered"] else ""
        return "\n".join(part for part in (shown, opened, taken) if part)

    with_parts(loaded, act)


def budget_table(limits: Limits, spent: Sequence[Mapping[str, Any]]) -> str:
    """What of today's budgets (UTC) is taken, of rows of SQL `spent_on`."""
    lines = []
    for row in spent:
        own = row["agent_id"] is not None
        tokens, money = (limits.person_tokens, limits.person_money) if own else (limits.bot_tokens, limits.bot_money)
        lines.append(
            (
                str(row["agent_id"]) if own else "all",
                f"{row['tokens']:,}",
                f"{tokens:,}" if tokens else "no limit",
                f"{row['micros'] / 1e6:.4f}",
                f"{money:.4f}" if money else "no limit",
                "yes" if row["told"] else "",
            )
        )
    return _table(("agent", "tokens today", "of", "money today", "of", "told"), lines)


def opener_line(costs: Mapping[str, int]) -> str:
    """What speaking first cost, of a row of SQL `opener_costs`."""
    delivered = costs["delivered"]
    each = (
        f"{costs['calls'] / delivered:.2f} model calls and {costs['tokens'] // delivered:,} tokens for each"
        if delivered
        else "none delivered"
    )
    return f"Openers: asked {costs['considered']} times, said {costs['said']}, delivered {delivered}; {each}."


@usage.command("reset", epilog="Example: bot usage reset console::ada   or   bot usage reset --all")
def usage_reset(
    context: typer.Context,
    user: Annotated[str | None, typer.Argument(help="The person as `bot users` shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Everybody, and the whole bot.")] = False,
) -> None:
    """Start today's budget anew."""
    if (user is None) == (not every):
        raise typer.BadParameter("name one person, or --all")

    async def act(parts: Parts) -> str:
        agent = None if user is None else (await person_named(parts.db, user))[1]
        async with parts.db.bare() as connection:
            count = await value(connection, "SELECT reset_spending(%s, %s)", (agent, parts.now().date()))
        return f"Today's budget of {count} {'person' if count == 1 else 'people'} begins anew."

    with_parts(settings(context), act)


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    table = Table(*columns, box=box.SIMPLE, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console = Console(width=160, no_color=True)
    with console.capture() as captured:
        console.print(table, markup=False)
    return captured.get().rstrip()
