"""The clock of a process of the bot, which can be moved while it runs: `clock.c`, preloaded into it. Needs a C compiler.

Nothing of the bot is replaced: its Python asks the system for the time, and gets what a machine would say whose clock was set.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
COMPILER = shutil.which("cc")


@dataclass(slots=True)
class Clock:
    """One clock, in a file."""

    path: Path
    library: Path
    _numbers: mmap.mmap = field(init=False)

    def __post_init__(self) -> None:
        self.path.write_bytes(bytes(16))
        with self.path.open("r+b") as file:
            self._numbers = mmap.mmap(file.fileno(), 16)

    @property
    def environment(self) -> dict[str, str]:
        """What a process is started with that is to go by this clock."""
        return {"LD_PRELOAD": str(self.library), "CHAOS_CLOCK": str(self.path)}

    def move(self, seconds: float) -> None:
        """From now on it is off by so much; 0 puts it right."""
        self._numbers[:8] = struct.pack("=q", round(seconds * 1e9))

    @property
    def readings(self) -> int:
        """How often anybody read it while it was off."""
        return int(struct.unpack("=q", self._numbers[8:])[0])


def clocks(folder: Path, count: int) -> list[Clock]:
    """So many; none where there is no compiler."""
    if COMPILER is None:
        return []
    library = folder / "clock.so"
    subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    return [Clock(folder / f"clock-{number}", library) for number in range(count)]
