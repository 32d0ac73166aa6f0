"""The tests that a change touches, by name: `make check`. A module's own test file, else those of its folder; scenarios are left out.

python -m tests.touched          prints the paths for pytest
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = ("tests/test_layout.py", "tests/test_docs.py")
SLOW = ("tests/scenarios", "tests/chaos", "tests/servers")


def changed() -> list[str]:
    """Files that differ from the last commit, and new ones."""
    diff = subprocess.run(["git", "diff", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    new = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [*diff.split(), *new.split()]


def touched(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """The tests that speak of these files, in order."""
    found = dict.fromkeys(ALWAYS)
    for file in map(Path, files):
        if file.suffix != ".py":
            continue
        if file.parts[0] == "tests":
            named = [file] if file.name.startswith("test_") else []
        else:
            own = Path("tests", *file.parts[:-1], f"test_{file.name}")
            named = (
                [own]
                if (root / own).is_file()
                else sorted(one.relative_to(root) for one in (root / own.parent).glob("test_*.py"))
            )
        found |= {one.as_posix(): None for one in named if (root / one).is_file() and not one.as_posix().startswith(SLOW)}
    return list(found)


if __name__ == "__main__":
    print(" ".join(touched(changed())))
