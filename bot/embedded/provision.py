"""Roles, database and extensions: what an administrator makes once, in the server inside or an external one.

Every step looks first and changes only what differs, so it may be broken off and run again at any time.
"""

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from bot.embedded.errors import EmbeddedError

# Raised whenever this module makes something new, so that existing data folders get it at their next start.
PROVISION = 1
DATABASE = "keepsake"
OWNER = "keepsake_owner"
BOT = "keepsake_bot"
EXTENSIONS = ("vector", "pg_trgm", "btree_gin", "unaccent")
# The operator's advice where an external server lacks an extension's files.
CONTRIB = "postgresql-contrib"
INSTALL = {"vector": "pgvector"}
PLAIN = ("SUPERUSER", "CREATEROLE", "CREATEDB", "BYPASSRLS", "REPLICATION")


def provision(admin: str, owner_password: str, bot_password: str, database: str = DATABASE) -> None:
    """Make the roles keepsake_owner and keepsake_bot, the database and its extensions, or correct them.

    Args:
        admin: the address of a role that may create all this, in any database of the server.
        owner_password: for keepsake_owner, who owns schema and tables and runs the migrations.
        bot_password: for keepsake_bot, who may only log in and use what the owner grants.
        database: the name of the database.

    Raises:
        EmbeddedError: the administrator may not do this, or an extension is not installed on the server.
    """
    try:
        with psycopg.connect(admin, autocommit=True, connect_timeout=10) as connection:
            _provision(connection, owner_password, bot_password, database)
    except psycopg.errors.InsufficientPrivilege as error:
        raise EmbeddedError(
            "The administrator may not create roles, databases or extensions. Give a superuser's address."
        ) from error
    except psycopg.OperationalError as error:
        raise EmbeddedError(f"The database could not be prepared: {reason(error)}") from error


def create_database(admin: Connection[TupleRow], name: str) -> None:
    """Make an empty database for keepsake_owner that keepsake_bot may enter; an existing one is kept."""
    with admin.cursor() as cursor:
        if cursor.execute("select from pg_database where datname = %s", (name,)).rowcount == 0:
            locale = sql.SQL("")
            if admin.info.server_version >= 170000:
                # The same order and letters everywhere, whatever the machine's locale.
                locale = sql.SQL("locale_provider builtin builtin_locale 'C.UTF-8' locale 'C'")
            cursor.execute(
                sql.SQL("create database {} owner {} template template0 encoding 'UTF8' {}").format(
                    sql.Identifier(name), sql.Identifier(OWNER), locale
                )
            )
        database = sql.Identifier(name)
        cursor.execute(sql.SQL("revoke all on database {} from public").format(database))
        cursor.execute(sql.SQL("grant connect on database {} to {}").format(database, sql.Identifier(BOT)))


def reason(error: psycopg.Error) -> str:
    """What the server said, without anything that could hold message text: class and SQLSTATE, and the text
    only where no connection came about."""
    if isinstance(error, psycopg.errors.DiskFull):
        return "the disk is full"
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        return " ".join(str(error).split())
    return f"{type(error).__name__} (SQLSTATE {error.sqlstate})"


def _provision(admin: Connection[TupleRow], owner_password: str, bot_password: str, database: str) -> None:
    _queue_up(admin)
    _role(admin, OWNER, owner_password)
    _role(admin, BOT, bot_password)
    create_database(admin, database)
    inside = make_conninfo(admin.info.dsn, password=admin.info.password, dbname=database)
    with psycopg.connect(inside, autocommit=True, connect_timeout=10) as connection:
        _queue_up(connection)
        connection.execute("revoke create on schema public from public")
        for extension in EXTENSIONS:
            _extension(connection, extension)


def _queue_up(connection: Connection[TupleRow]) -> None:
    # The server goes on with the last statement of a client that was killed; the lock waits for its end.
    connection.execute("select pg_advisory_lock(hashtext('keepsake provision'))")


def _role(admin: Connection[TupleRow], name: str, password: str) -> None:
    role = sql.Identifier(name)
    with admin.cursor() as cursor:
        cursor.execute(
            "select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication from pg_roles where rolname = %s", (name,)
        )
        found = cursor.fetchone()
        if found is None:
            unwanted = " ".join(f"NO{attribute}" for attribute in PLAIN)
            cursor.execute(sql.SQL("create role {} login {}").format(role, sql.SQL(unwanted)))
            if name == OWNER and not _superuser(admin):
                cursor.execute(sql.SQL("grant {} to current_user").format(role))
        else:
            # Only what differs: even naming NOSUPERUSER takes a superuser, which hosted servers do not give.
            for attribute, has in zip(PLAIN, found, strict=True):
                if has:
                    cursor.execute(sql.SQL("alter role {} {}").format(role, sql.SQL(f"NO{attribute}")))
        # Hashed here, because the server may log this statement.
        secret = admin.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
        cursor.execute(sql.SQL("alter role {} login password {}").format(role, sql.Literal(secret)))


def _superuser(admin: Connection[TupleRow]) -> bool:
    return admin.info.parameter_status("is_superuser") == "on"


def _extension(connection: Connection[TupleRow], name: str) -> None:
    try:
        connection.execute(sql.SQL("create extension if not exists {} schema public").format(sql.Identifier(name)))
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise EmbeddedError(
            f"The database server lacks the extension {name}. Install {INSTALL.get(name, CONTRIB)} there."
        ) from error
