"""An operator restores a backup: who was erased since stays erased, what people decided since stays decided, and it says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.folders import data_folder
from tests.scenarios.terminal import run


@pytest.fixture
def data() -> Iterator[Path]:
    with data_folder("restored") as data:
        yield data


async def test_a_restored_backup_has_erasures_and_decisions_applied_again(data: Path) -> None:
    for user in ("ada", "bob"):
        code, _, err = await run(data, "chat", user=user, given=f"My name is {user.title()} and my dog is called Biscuit.\n")
        assert code == 0, err
    code, out, err = await run(data, "backup", str(data.parent))
    assert code == 0, err
    file = out.split("Written: ")[1].strip()
    assert "ada" not in Path(file).name
    code, out, _ = await run(data, "chat", user="ada", given="/memory forget everything yes\n")
    assert "found nothing left" in out
    _, out, _ = await run(data, "chat", user="bob", given="/memory search Biscuit\n")
    number = re.search(r"(m\d+) .*My name is Bob", out)
    assert number is not None, out
    _, out, _ = await run(data, "chat", user="bob", given=f"/memory forget {number[1]}\n/memory pause\n")
    assert f"Forgotten: {number[1]}" in out, out
    assert "Paused." in out
    code, out, err = await run(data, "restore", file, "--replace")
    assert code == 0, err
    assert "Erased again: 1 person" in out
    assert "what was forgotten (1 person)" in out, out
    assert "pauses (1 person)" in out, out
    _, out, _ = await run(data, "chat", user="ada", given="/memory view\n")
    assert "I know nothing about you yet" in out
    _, out, _ = await run(data, "chat", user="bob", given="/memory view\n")
    assert "Paused: nothing new is remembered." in out
    assert "Biscuit" not in out
