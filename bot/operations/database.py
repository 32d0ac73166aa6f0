"""Is this a database the bot may run on? Asked at every start and by `bot doctor`, with the bot's own role.

A role that could walk around row-level security (superuser, BYPASSRLS, or an owner of the tables) is refused: `initdb -U` makes a
superuser, and with one the promises about other people's memory would rest on our code alone.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg.rows import dict_row

from bot.config.findings import Finding, right, wrong
from bot.embedded.provision import EXTENSIONS, OWNER, reason
from memory import migrations

OLDEST = 16
"""The oldest PostgreSQL that is tried; older ones lack parts of what the migrations use."""
OLDEST_VECTOR = (0, 8)
"""pgvector since which a filtered search goes on until it has found enough (iterative scan)."""
PATIENCE = 10
# A server that answers may only lack the role or the database, which no waiting mends.
_UNREADY = re.compile(r"does not exist|authentication failed|no password supplied")
_START_IT = "Start it, or correct database.url (KEEPSAKE__DATABASE__URL)."
_MAKE_READY = (
    "Correct database.url (KEEPSAKE__DATABASE__URL); on a server that was never prepared, run `bot migrate --admin-url-env NAME`, "
    "with an administrator's address in the variable NAME."
)

_ROLE = """
SELECT current_user AS name, rolsuper, rolbypassrls, rolcreaterole,
  EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = 'keepsake' AND c.relkind = 'r' AND pg_has_role(current_user, c.relowner, 'USAGE')) AS owns
FROM pg_roles WHERE rolname = current_user"""
_OPEN = """
SELECT DISTINCT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname IN ('agent_id', 'owner_id') AND NOT a.attisdropped
WHERE n.nspname = 'keepsake' AND c.relkind = 'r' AND (a.attname IS NOT NULL OR c.relname = 'agents')
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1"""


async def inspect(url: str, *, inside: bool) -> list[Finding]:
    """Everything there is to say about a database, in order. `inside`: it is the one in the data folder."""
    where = "the PostgreSQL inside" if inside else "database.url"
    try:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=PATIENCE, row_factory=dict_row)
    except psycopg.Error as error:
        unready = _UNREADY.search(str(error)) is not None
        remedy = "Look at its log in the data folder." if inside else _MAKE_READY if unready else _START_IT
        return [wrong(f"{where}: cannot be reached ({without_password(reason(error), url)})", remedy, passing=not unready)]
    async with connection:
        found = [_version(connection.info.server_version, where)]
        found += [_extension(name, version) for name, version in (await _extensions(connection)).items()]
        found.append(_role((await _rows(connection, _ROLE))[0]))
        found.append(await _revision(connection))
        if found[-1].well:
            open_tables = [str(row["name"]) for row in await _rows(connection, _OPEN)]
            found.append(_security(open_tables))
        return found


async def _rows(connection: psycopg.AsyncConnection[dict[str, Any]], statement: str) -> list[dict[str, Any]]:
    return await (await connection.execute(statement)).fetchall()


def _version(number: int, where: str) -> Finding:
    major = number // 10_000
    if major < OLDEST:
        return wrong(f"{where}: PostgreSQL {major} is too old", f"Use PostgreSQL {OLDEST} or newer.")
    return right(f"{where}: PostgreSQL {major}.{number % 10_000}")


async def _extensions(connection: psycopg.AsyncConnection[dict[str, Any]]) -> dict[str, str | None]:
    rows = await _rows(connection, "SELECT extname, extversion FROM pg_extension")
    installed = {row["extname"]: row["extversion"] for row in rows}
    return {name: installed.get(name) for name in EXTENSIONS}


def _extension(name: str, version: str | None) -> Finding:
    if version is None:
        return wrong(f"extension {name}: is missing", "Run `bot migrate --admin-url-env NAME` once, as an administrator.")
    if name == "vector" and tuple(int(part) for part in version.split(".")[:2]) < OLDEST_VECTOR:
        return wrong(
            f"extension vector: {version} is too old",
            "Install pgvector 0.8 or newer on the server, then ALTER EXTENSION vector UPDATE.",
        )
    return right(f"extension {name} {version}")


def _role(row: Mapping[str, Any]) -> Finding:
    too_much = [
        word
        for word, has in (
            ("is a superuser", row["rolsuper"]),
            ("has BYPASSRLS", row["rolbypassrls"]),
            ("owns the bot's tables", row["owns"]),
        )
        if has
    ]
    if too_much:
        return wrong(
            f"database.url: the role {row['name']} {' and '.join(too_much)}, so it could read across people",
            "Connect as keepsake_bot; `bot migrate --admin-url-env NAME` makes that role.",
        )
    return right(f"role {row['name']}: no superuser, no BYPASSRLS, owns nothing")


async def _revision(connection: psycopg.AsyncConnection[dict[str, Any]]) -> Finding:
    needed = migrations.head()
    try:
        rows = await _rows(connection, "SELECT version_num FROM keepsake.alembic_version")
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        rows = []
    except psycopg.errors.InsufficientPrivilege:
        # Before the first migration the schema is not there, or not opened to this role.
        return wrong(
            "database.url: this role may not use the bot's tables",
            "Connect as keepsake_bot, or run `bot migrate --admin-url-env NAME`.",
        )
    found = rows[0]["version_num"] if rows else ""
    if found > needed:
        return wrong(
            f"migrations: the database is at {found}, which is newer than this program",
            "Update Keepsake, or restore an older backup.",
        )
    if found == needed:
        functions = await _rows(connection, "SELECT digest FROM keepsake.functions")
        if [row["digest"] for row in functions] == [migrations.digest()]:
            return right(f"migrations: at the newest revision, {needed}")
        state = "the database has the functions of another version"
    else:
        state = f"the database is at {found}, this program needs {needed}" if found else "are missing"
    return wrong(
        f"migrations: {state}", "Run `bot migrate --admin-url-env NAME`, with an administrator's address in the variable NAME."
    )


def _security(open_tables: Sequence[str]) -> Finding:
    if open_tables:
        return wrong(
            f"row-level security: is not forced on {', '.join(open_tables)}",
            "Somebody changed the tables; restore a backup or run the migrations again.",
        )
    return right("row-level security: forced on every table with personal data")


def without_password(text: str, url: str) -> str:
    """A text without the password of an address that it may quote."""
    password = urlsplit(url).password
    return text.replace(password, "***") if password else text


def owner_address(admin_url: str, database: str, password: str) -> str:
    """The owner role's address on an administrator's server."""
    parts = urlsplit(admin_url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{OWNER}:{quote(password, safe='')}@{place}", path=f"/{database}"))
