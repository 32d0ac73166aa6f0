"""A database for each test: the last test's, emptied, where nothing but rows was changed in it; else a clone of the template.

Emptying costs a tenth of cloning and dropping, which took half of the processor time of the suite.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from bot.embedded import Servers

# Dead rows stay behind in indexes, however thoroughly they are vacuumed.
_USES = 40

_CLOSE = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)

# Whatever is defined: changes in place (statistics, vacuum) keep a row's xmin, and every definition's row has one.
_CATALOGUES = (
    *(
        "class",
        "attribute",
        "attrdef",
        "proc",
        "type",
        "constraint",
        "trigger",
        "policy",
        "rewrite",
        "namespace",
        "extension",
        "index",
    ),
    *("sequence", "event_trigger", "default_acl", "publication", "statistic_ext", "description", "cast", "operator", "opclass"),
)
_COUNTED = " UNION ALL ".join(
    f"SELECT '{name}' || count(*) || '.' || coalesce(max(xmin::text::bigint), 0) AS made FROM pg_{name}" for name in _CATALOGUES
)
_DEFINED = f"""
  SELECT md5(string_agg(made, ',' ORDER BY made)) FROM (
    {_COUNTED}
    UNION ALL SELECT coalesce(string_agg(setconfig::text, ',' ORDER BY setrole), '') FROM pg_db_role_setting
    UNION ALL SELECT rolname || rolcanlogin || rolconnlimit || coalesce(rolvaliduntil::text, '')
      FROM pg_roles WHERE rolname LIKE 'keepsake%'
  ) made
"""

_TABLES = """
  SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_t%'
  ORDER BY 1
"""

_NUMBERS = """
  SELECT s.seqrelid::regclass::text, coalesce(pg_sequence_last_value(s.seqrelid), s.seqstart),
    pg_sequence_last_value(s.seqrelid) IS NOT NULL
  FROM pg_sequence s ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class State:
    """What a database has to look like before it is given to another test."""

    defined: str
    rows: dict[str, str]
    numbers: list[tuple[object, ...]]


class Databases:
    """Databases of one test process, one in use at a time."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._numbers = itertools.count(1)
        self._spare: tuple[str, int] | None = None
        self._first: dict[str, State] = {}

    def take(self) -> str:
        """The name of a database like the template."""
        if self._spare:
            return self._spare[0]
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self._servers.admin_url, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE keepsake OWNER keepsake_owner STRATEGY wal_log".encode())
        with self._into(name) as connection:
            rows = {table: _content(connection, table) for table in _filled(connection)}
            self._first[name] = State(_defined(connection), rows, connection.execute(_NUMBERS).fetchall())
        self._spare = (name, 0)
        return name

    def give_back(self) -> None:
        """Empty the database for the next test, or drop it."""
        assert self._spare
        name, uses = self._spare
        if uses < _USES and self._emptied(name):
            self._spare = (name, uses + 1)
            return
        self._spare = None
        with psycopg.connect(self._servers.admin_url, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())

    def _emptied(self, name: str) -> bool:
        try:
            with self._into(name) as connection:
                connection.execute(_CLOSE)
                return _emptied(connection, self._first[name])
        except psycopg.Error:
            return False

    def _into(self, name: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._servers.admin_url, dbname=name, autocommit=True, row_factory=tuple_row)


def _emptied(connection: psycopg.Connection[tuple[object, ...]], first: State) -> bool:
    """Whether a database is as it was after its rows were taken out."""
    if _defined(connection) != first.defined:
        return False
    filled = _filled(connection)
    if not set(first.rows) <= set(filled) or any(_content(connection, table) != content for table, content in first.rows.items()):
        return False
    tables = [table for table in filled if table not in first.rows]
    if "embeddings" in tables:
        return False
    if tables:
        # Without triggers and references: each table is emptied for itself.
        deletes = "; ".join(f"DELETE FROM {table}" for table in tables)
        connection.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {deletes}; COMMIT".encode())
        connection.execute(f"VACUUM {', '.join(tables)}".encode())
    for numbers, now in zip(first.numbers, connection.execute(_NUMBERS).fetchall(), strict=True):
        if numbers != now:
            connection.execute("SELECT setval(%s::text::regclass, %s, %s)", numbers)
    return True


def _defined(connection: psycopg.Connection[tuple[object, ...]]) -> str:
    [(made,)] = connection.execute(_DEFINED).fetchall()
    return str(made)


def _filled(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    """Tables that have rows."""
    tables = [str(table) for (table,) in connection.execute(_TABLES).fetchall()]
    asked = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in tables)
    return [str(table) for (table,) in connection.execute(asked.encode()).fetchall()]


def _content(connection: psycopg.Connection[tuple[object, ...]], table: str) -> str:
    query = sql.SQL("SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM {} t").format(sql.SQL(table))  # type: ignore[arg-type]
    [(content,)] = connection.execute(query).fetchall()
    return str(content)
