"""What goes wrong with the servers inside, told to the operator."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class EmbeddedError(Exception):
    """The servers inside, a backup or a restore failed; the text says what is wrong and what to do.

    The text never holds message text, a statement or a password, so it may be shown and logged.
    """


@contextmanager
def explained(place: Path, choose: str = "choose another folder with KEEPSAKE_DATA") -> Iterator[None]:
    """Turn the operating system's refusals about files at or below `place` into an `EmbeddedError`. `choose`: the way out.

    Raises:
        EmbeddedError: for every OSError inside the block.
    """
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else str(place)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text = f"The disk is full at {where}. Free some space, then start again."
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            text = (
                f"{where} cannot be used: {error.strerror}. Make it writable for this user, run as the user "
                f"who owns it, or {choose}."
            )
        else:
            text = f"{where} cannot be used: {error.strerror or error}. {choose[0].upper()}{choose[1:]}."
        raise EmbeddedError(text) from error
