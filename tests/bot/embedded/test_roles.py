"""What the roles may do, and what the log does not say; on one pair of servers."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from bot.embedded import Servers, provision
from bot.embedded.postgres import url
from tests.bot.embedded.conftest import ask, until

CANARY = "canary-7f3a"
Running = tuple[Path, Servers]


def test_bot_and_owner_are_plain_roles(running: Running) -> None:
    _, found = running
    attributes = (
        "select array[rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication] "
        "from pg_roles where rolname = current_user"
    )
    for address in (found.bot_url, found.owner_url):
        assert ask(address, attributes) == [True, False, False, False, False, False]
    assert (
        ask(found.admin_url, "select count(*) from pg_shdepend where refobjid = 'keepsake_bot'::regrole and deptype = 'o'") == 0
    )
    assert ask(found.bot_url, "select pg_get_userbyid(datdba) from pg_database where datname = 'keepsake'") == ("keepsake_owner")
    for forbidden in ("create table t (i int)", "create temp table t (i int)", "create schema s"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(found.bot_url, forbidden)


def test_extensions_encoding_and_settings(running: Running) -> None:
    _, found = running
    names = "select array_agg(extname::text order by extname) from pg_extension where extname <> 'plpgsql'"
    assert ask(found.bot_url, names) == ["btree_gin", "pg_trgm", "unaccent", "vector"]
    assert ask(found.bot_url, "select lower('ÉCOLE')") == "école"
    for setting, value in {"listen_addresses": "", "fsync": "on", "jit": "off", "shared_buffers": "64MB"}.items():
        assert ask(found.bot_url, f"select current_setting('{setting}')") == value


def test_addresses_are_not_shown_with_their_passwords(running: Running) -> None:
    _, found = running
    assert str(conninfo_to_dict(found.admin_url)["password"]) not in repr(found)


def test_a_wrong_password_is_refused(running: Running) -> None:
    data, _ = running
    for role in ("keepsake_admin", "keepsake_owner", "keepsake_bot"):
        for password in ("wrong", ""):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(url(role, password, data / "run", "keepsake"))


def test_provision_again_corrects_what_differs(running: Running) -> None:
    _, found = running
    owner, bot = (str(conninfo_to_dict(address)["password"]) for address in (found.owner_url, found.bot_url))
    with psycopg.connect(found.admin_url, autocommit=True) as admin:
        admin.execute("alter role keepsake_bot superuser bypassrls")
    provision(found.admin_url, owner_password="other", bot_password=bot)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(found.owner_url)
    assert ask(found.owner_url.replace(owner, "other"), "select 1") == 1
    provision(found.admin_url, owner_password=owner, bot_password=bot)
    assert ask(found.owner_url, "select 1") == 1
    plain = "select rolsuper or rolbypassrls from pg_roles where rolname = current_user"
    assert ask(found.bot_url, plain) is False


def test_provision_by_several_at_once(running: Running) -> None:
    # So it is too when a killed bot's last statement still runs while the next bot begins.
    _, found = running
    owner, bot = (str(conninfo_to_dict(address)["password"]) for address in (found.owner_url, found.bot_url))
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda _: provision(found.admin_url, owner, bot, "second"), range(3)))
    with psycopg.connect(found.bot_url, dbname="second") as connection:
        assert connection.info.dbname == "second"


def test_no_text_reaches_the_logs(running: Running) -> None:
    data, found = running
    with psycopg.connect(found.owner_url, autocommit=True) as owner:
        owner.execute("create table said (text text unique, number int)")
        owner.execute("insert into said values (%s)", (CANARY,))
        for query, values in {
            "insert into said values (%s)": (CANARY,),
            f"insert into said values ('{CANARY}')": (),
            "select %s::text::int": (CANARY,),
            f"select '{CANARY}": (),
            f"select {CANARY.replace('-', '_')}": (),
            f"do $$ begin raise warning '{CANARY}'; raise exception '{CANARY}'; end $$": (),
        }.items():
            with pytest.raises(psycopg.Error):
                owner.execute(query.encode(), values)
    # A backend that dies is reported with its running statement, unless errors are terse.
    victim = psycopg.connect(found.owner_url, autocommit=True)

    def wait() -> None:
        with pytest.raises(psycopg.OperationalError):
            victim.execute(f"select pg_sleep(60), '{CANARY}'".encode())

    thread = threading.Thread(target=wait)
    thread.start()
    active = f"select count(*) from pg_stat_activity where state = 'active' and pid = {victim.info.backend_pid}"
    until(lambda: ask(found.admin_url, active) == 1)
    os.kill(victim.info.backend_pid, signal.SIGKILL)
    thread.join(30)
    victim.close()
    log = data / "logs" / "postgres.log"
    until(lambda: log.read_text().count("ready to accept connections") == 2)
    assert "was terminated by signal 9" in log.read_text()
    for file in (data / "logs").iterdir():
        assert CANARY not in file.read_text()
        assert CANARY.replace("-", "_") not in file.read_text()
