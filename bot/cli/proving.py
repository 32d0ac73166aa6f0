"""`bot memory verify`: whether anything stands that should be gone, in the whole database, Redis and the export folder."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from bot.cli.data import Admin, named, source
from bot.cli.people import with_parts
from bot.cli.shared import existing, note, settings
from bot.commands.context import Parts
from bot.operations import backup as backups
from memory import proof
from memory.db import value


def verify(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(help="Words that should stand nowhere, each argument as one sequence.")
    ] = None,
    scrub: Annotated[
        bool,
        typer.Option("--scrub", help="Have deleted rows overwritten: the tables are rewritten, and the bot waits meanwhile."),
    ] = False,
    admin_url_env: Admin = None,
) -> None:
    """Search everything for accounts that were erased, and for words that should be gone."""
    left = 0

    async def look(parts: Parts) -> str:
        nonlocal left
        async with parts.db.bare() as connection:
            accounts = await value(connection, "SELECT erased_yet_named(%s)", (parts.erasure_key,))
            found = (
                await proof.everywhere(connection, parts.cache, words or [], parts.data / "exports") if words else proof.Found()
            )
        names = {table: number for table, number in accounts.items() if number}
        places = {table: number for table, number in found.tables.items() if number}
        left = sum(names.values()) + sum(places.values()) + len(found.files)
        lines = [f"Erased accounts: {_told(names, len(accounts))}"]
        lines += [f"These words: {_told(places, len(found.tables))}"] if words else []
        lines += [f"These words stand in {path}." for path in found.files]
        return "\n".join([*lines, proof.KEPT_ON_DISK])

    loaded = existing(settings(context))
    with_parts(loaded, look)
    if scrub:
        with source(loaded, admin_url_env) as running:
            _scrub(backups.address(running, **named(loaded)))
        typer.echo("Scrubbed: every table was written again without what was deleted, and a new write-ahead log begun.")
    if left:
        raise typer.Exit(1)


def _told(found: dict[str, int], searched: int) -> str:
    rows = ", ".join(f"{number} in {table}" for table, number in found.items())
    return f"still named: {rows}." if found else f"nothing in {searched} tables."


def _scrub(address: str) -> None:
    """Raises psycopg.Error."""
    with psycopg.connect(address, autocommit=True) as admin:
        tables = admin.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'keepsake' ORDER BY 1"
        ).fetchall()
        for (table,) in tables:
            note(f"writing {table} again ...")
            admin.execute(f"VACUUM (FULL) {table}".encode())
        admin.execute("SELECT pg_switch_wal()")
        admin.execute("CHECKPOINT")
