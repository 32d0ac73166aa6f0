"""Starting, sharing, losing and stopping the servers, with real processes."""

import json
import os
import shutil
import stat
import time
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from bot.embedded import EmbeddedError, attach, servers
from bot.embedded.accounts import Mode
from bot.embedded.postgres import Postgres
from tests.bot.embedded.conftest import Child, ask, kill_servers, processes


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_first_start_second_start_and_stop_in_each_mode(data: Path, mode: Mode) -> None:
    told: list[str] = []
    first = attach(data, progress=told.append, mode=mode)
    with psycopg.connect(first.servers.owner_url, autocommit=True) as connection:
        connection.execute("create table kept as select 7 as seven")
    assert redis.Redis.from_url(first.servers.redis_url).ping()
    assert {process.uids().real for process in processes(data)} == {(data / "postgres").stat().st_uid}
    assert ((data / "postgres").stat().st_uid != os.geteuid()) == (mode == "account")
    assert all(os.getsid(process.pid) != os.getsid(0) for process in processes(data))
    first.release()
    assert not processes(data)
    assert told == ["Making the database (first start) ...", "Starting PostgreSQL and Redis ..."]

    assert json.loads((data / "keepsake.json").read_text())["mode"] == mode
    assert permissions(data) == (0o710 if mode == "account" else 0o700)
    assert permissions(data / "passwords.json") == 0o600
    assert all(permissions(data / name) == 0o700 for name in ("postgres", "redis", "logs", "run"))

    began = time.monotonic()
    with servers(data) as found:
        warm = time.monotonic() - began
        assert found == first.servers
        assert ask(found.owner_url, "select seven from kept") == 7
        began = time.monotonic()
        attach(data).release()
        joined = time.monotonic() - began
    assert not processes(data)
    # Far above what an idle machine takes (0.17 s and 0.01 s), as this one may be busy.
    assert warm < 3
    assert joined < 1


def test_two_at_once_share_the_servers_and_the_last_one_stops_them(data: Path) -> None:
    children = [Child(data), Child(data)]
    addresses = {child.attached() for child in children}
    assert len(addresses) == 1
    assert addresses != {""}
    assert len([process for process in processes(data) if process.name() == "valkey-server"]) == 1
    assert children[0].leave() == 0
    assert ask(addresses.pop(), "select 1") == 1
    assert children[1].leave() == 0
    assert not processes(data)


def test_servers_survive_a_killed_bot_and_are_found_again(data: Path) -> None:
    child = Child(data)
    address = child.attached()
    before = ask(address, "select pg_postmaster_start_time()::text")
    child.kill()
    with servers(data) as found:
        assert ask(found.admin_url, "select pg_postmaster_start_time()::text") == before
        assert len(json.loads((data / "leases.json").read_text())["leases"]) == 1
    assert not processes(data)


def test_killed_servers_are_started_again_with_all_committed_data(data: Path) -> None:
    with servers(data) as found:
        with psycopg.connect(found.owner_url, autocommit=True) as connection:
            connection.execute("create table kept as select 7 as seven")
        kill_servers(data)
        # The number now belongs to a process that is no PostgreSQL, as after a restart of a container.
        pidfile = data / "postgres" / "postmaster.pid"
        pidfile.write_text("\n".join([str(os.getpid()), *pidfile.read_text().split("\n")[1:]]))
        with servers(data) as again:
            assert again == found
            assert ask(again.owner_url, "select seven from kept") == 7
            assert redis.Redis.from_url(again.redis_url).ping()


def test_a_removed_socket_folder_is_made_again(data: Path) -> None:
    deep = data / ("d" * 100)
    with servers(deep) as found:
        sockets = Path(json.loads((deep / "keepsake.json").read_text())["sockets"])
        assert permissions(sockets) == 0o700
        shutil.rmtree(sockets)
        with servers(deep) as again:
            assert again != found
            assert ask(again.admin_url, "select 1") == 1
            assert redis.Redis.from_url(again.redis_url).ping()
            assert len([process for process in processes(deep) if process.name() == "valkey-server"]) == 1
        last = json.loads((deep / "keepsake.json").read_text())["sockets"]
    assert not Path(last).exists()


def test_a_first_start_that_was_broken_off_is_done_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Postgres, "provision", killed)
        with pytest.raises(KeyboardInterrupt):
            attach(data)
    assert not processes(data)
    (data / "making-0000").mkdir()
    (data / "making-0000" / "pgdata").mkdir()
    shutil.rmtree(data / "postgres")
    with servers(data) as found:
        assert ask(found.bot_url, "select 1") == 1
    assert not list(data.glob("making-*"))


def test_leaving_after_the_data_folder_was_removed_makes_nothing_new(data: Path) -> None:
    held = attach(data)
    kill_servers(data)
    shutil.rmtree(data)
    held.release()
    assert not data.exists()


def test_data_of_another_major_version_is_refused_with_the_way_out(data: Path) -> None:
    attach(data).release()
    (data / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedError, match=r"PostgreSQL 17.*PostgreSQL 18.*bot backup.*bot restore"):
        attach(data)
    (data / "postgres" / "PG_VERSION").write_text("18\n")
    (data / "passwords.json").unlink()
    with pytest.raises(EmbeddedError, match=r"passwords.json is missing"):
        attach(data)
    assert not processes(data)


def test_a_left_over_lease_of_a_reused_process_number_does_not_keep_the_servers(data: Path) -> None:
    held = attach(data)
    stored = json.loads((data / "leases.json").read_text())
    stored["leases"].append({"token": "stale", "pid": 1, "started": psutil.Process(1).create_time()})
    (data / "leases.json").write_text(json.dumps(stored))
    held.release()
    assert not processes(data)
