"""Folders that cannot be used are refused with one clear sentence; nothing in them is touched."""

import os
import shutil
from pathlib import Path

import pytest

from bot.embedded import EmbeddedError, attach, programs
from bot.embedded.accounts import Account, choose
from bot.embedded.folder import Folder, open_folder
from bot.embedded.programs import Programs
from tests.bot.embedded.conftest import ROOT


def test_a_strange_folder_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(EmbeddedError, match="not a data folder of Keepsake"):
        attach(tmp_path)
    with pytest.raises(EmbeddedError, match="is a file"):
        attach(tmp_path / "holiday.jpg")
    with pytest.raises(EmbeddedError, match="KEEPSAKE_DATA"):
        attach(tmp_path / "holiday.jpg" / "data")
    assert os.listdir(tmp_path) == ["holiday.jpg"]


def test_an_unwritable_place_is_refused(tmp_path: Path) -> None:
    place = Path("/proc") if ROOT else tmp_path  # where not even root can make a folder
    if not ROOT:
        tmp_path.chmod(0o500)
    with pytest.raises(EmbeddedError, match="cannot be used"):
        attach(place / "data")


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keepsake.json").write_text("{}")
    if ROOT:
        os.chown(tmp_path, 12345, 12345)
    theirs = tmp_path if ROOT else Path("/")
    with pytest.raises(EmbeddedError, match="belongs to another user"):
        attach(theirs)


def test_a_damaged_marker_is_named(tmp_path: Path) -> None:
    (tmp_path / "keepsake.json").write_text("{")
    with pytest.raises(EmbeddedError, match=r"keepsake\.json is damaged"):
        attach(tmp_path)


def test_missing_programs_name_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAKE_PG_BIN", str(tmp_path))
    with pytest.raises(EmbeddedError, match="KEEPSAKE_PG_BIN"):
        attach(tmp_path / "data")
    monkeypatch.delenv("KEEPSAKE_PG_BIN")
    monkeypatch.setenv("KEEPSAKE_REDIS_BIN", str(tmp_path))
    with pytest.raises(EmbeddedError, match="KEEPSAKE_REDIS_BIN"):
        attach(tmp_path / "data")


def test_the_account_must_reach_the_folder_and_no_parent_is_changed(tmp_path: Path) -> None:
    """Who is not root runs the servers as they are, and reaches what they own."""
    tmp_path.chmod(0o700)
    if ROOT:
        with pytest.raises(EmbeddedError, match="cannot reach"):
            attach(tmp_path / "data", mode="account")
    else:
        assert choose(forced="account").mode == "direct"
        attach(tmp_path / "data", mode="account").release()
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_programs_out_of_reach_are_copied_into_the_data_folder(data: Path, tmp_path: Path) -> None:
    account = choose(forced="account")
    folder = open_folder(data)
    folder.prepare(account)
    install = tmp_path / "pginstall"
    for name in ("bin", "lib", "share"):
        (install / name).mkdir(parents=True)
    (install / "bin" / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 18.6'\n")
    shutil.copy(install / "bin" / "postgres", tmp_path / "valkey-server")
    (install / "bin" / "postgres").chmod(0o700)
    (tmp_path / "valkey-server").chmod(0o700)
    tmp_path.chmod(0o700)
    given = Programs(install / "bin", tmp_path / "valkey-server")
    found, major = programs.ready(given, account, folder)
    assert major == 18
    assert found.postgres.is_relative_to(data / "programs") is ROOT, "who is not root reaches what they own"
    assert programs.ready(given, account, folder) == (found, 18)


def test_servers_see_no_secret_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    account = Account("direct", "", os.geteuid(), os.getegid())
    assert "OPENAI_API_KEY" not in account.run(["env"], timeout=10).stdout


@pytest.mark.parametrize("name", ["x" * 120, "a,b", "Träume & mehr"])
def test_sockets_of_odd_folders_are_elsewhere(tmp_path: Path, name: str) -> None:
    account = Account("direct", "", os.geteuid(), os.getegid())
    folder = Folder(tmp_path / name)
    folder.path.mkdir()
    sockets = folder.sockets(account)
    assert not sockets.is_relative_to(folder.path)
    assert folder.sockets(account) == sockets
    copy = Folder(tmp_path / "copy" / ("y" * 120))
    shutil.copytree(folder.path, copy.path)
    assert copy.sockets(account) != sockets
    for one in (folder, copy):
        one.discard_sockets()
    assert not sockets.exists()
