"""The data folder and the key in it, for every command that needs no more of the bot."""

import os
import secrets
from pathlib import Path

from bot.config.findings import StartError

KEY_FILE = "erasure.key"


def make_folder(data: Path) -> None:
    """Make the data folder (0700), also where no server runs inside it. Raises StartError."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(
            f"data.folder: {data} cannot be made ({error.strerror}). Make it, or choose another with KEEPSAKE_DATA."
        ) from error


def erasure_key(data: Path) -> bytes:
    """The key of the hashes that an erasure leaves for a week; made at first use (0600)."""
    path = data / KEY_FILE
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
    except FileExistsError:
        pass
    key = path.read_bytes()
    if len(key) != 32:
        raise StartError(f"data.folder: {path} is damaged. Remove it; a new one is made.")
    return key
