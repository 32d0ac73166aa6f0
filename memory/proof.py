"""The proof of an erasure: a search that would have found what is left.

By agent, author and origin it looks through everybody's rows (SQL `residue`). By words it looks for the rarest sequences of what was erased,
chosen before it went: in every column that holds text or JSON, of the agents who share a place with the person, in Redis and in the export
folder. Export files stay, as they are people's own copies, and are named: those of the person, and those of others that hold their words.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path

from memory.cache import Cache
from memory.db import Connection, value

MOST = 200
"""Word sequences that are looked for."""
LONGEST = 4
"""Words of a sequence."""
ALONE = 8
"""Letters of a word that is looked for by itself in files; a number has half as many digits."""
TEXTS = 20_000
"""The newest texts of each kind that sequences are chosen from."""
KEPT_ON_DISK = (
    "What no program can take back at once: deleted rows stay in the database's files until it vacuums them, and in its write-ahead log until "
    "that is recycled; `bot memory verify --scrub` has both done now. Backups made before still have everything; an erasure is applied again "
    "when one is restored."
)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Traces:
    """What to look for after an erasure, and where: word sequences in lower case, and agents. Held in memory alone.

    `single`: long words and numbers of theirs alone, by which other people's files are known that the bot's own sentences are in.
    """

    words: tuple[str, ...] = ()
    agents: tuple[int, ...] = ()
    authors: tuple[str, ...] = ()
    single: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Where words are left: rows by table, cache keys (`redis`), and files of exports: of the person (`own`), and of others."""

    tables: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


def rarest(texts: Iterable[str], most: int = MOST) -> list[str]:
    """The rarest word sequences of texts, one of a text at most: what a copy would be known by, in lower case.

    Rare is what few of the texts have. A sequence has at least two words, or one that is long or a number; it stands in the text exactly so.
    """
    folded = [text.lower() for text in texts]
    uses: Counter[str] = Counter()
    for text in folded:
        uses.update(set(_WORD.findall(text)))
    best: dict[str, float] = {}
    for text in folded:
        found = max(_sequences(text, uses, len(folded)), default=None)
        if found is not None:
            best[found[1]] = max(found[0], best.get(found[1], 0.0))
    return sorted(best, key=lambda sequence: (-best[sequence], sequence))[:most]


def _sequences(text: str, uses: Counter[str], texts: int) -> Iterable[tuple[float, str]]:
    words = list(_WORD.finditer(text))
    for start in range(len(words)):
        run = words[start : start + LONGEST]
        # Said twice, a word makes a sequence no rarer: it may be somebody else's word.
        while len({word[0] for word in run}) < len(run):
            run = run[:-1]
        while len(run) > 1 and re.search(r"[\"\\\n\r\t]", text[run[0].start() : run[-1].end()]):
            run = run[:-1]  # JSON would write it otherwise
        told = text[run[0].start() : run[-1].end()]
        if len(run) < 2 and len(told) < 8 and not any(c.isdigit() for c in told):
            continue
        if len(told) >= 8:
            yield sum(log((texts + 1) / uses[word[0]]) for word in run), told


def longest(texts: Iterable[str], most: int = MOST) -> list[str]:
    """The rarest words of texts that are long or numbers, in lower case: what the bot's own sentences about them may have in common with them."""
    uses = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
    found = [word for word in uses if len(word) >= ALONE or (len(word) >= ALONE // 2 and word.isdecimal())]
    return sorted(found, key=lambda word: (uses[word], -len(word), word))[:most]


async def traces(connection: Connection, agent: int, authors: Sequence[str]) -> Traces:
    """What the proof will look for, to be asked before an erasure. `agent`: 0 for an author who never had one."""
    cursor = await connection.execute("SELECT texts_of(%s, %s, %s) AS text", (agent, list(authors), TEXTS))
    texts = [row["text"] for row in await cursor.fetchall()]
    words, single = rarest(texts), longest(texts)
    agents = list(await value(connection, "SELECT beside(%s, %s)", (agent, list(authors))))
    others = [each for each in agents if each != agent]
    cursor = await connection.execute("SELECT said_by_others(%s, %s, %s) AS words", ([*words, *single], others, list(authors)))
    theirs = {row["words"] for row in await cursor.fetchall()}
    own, alone = (tuple(each for each in some if each not in theirs) for some in (words, single))
    return Traces(own, tuple(agents), tuple(authors), alone)


async def search(connection: Connection, cache: Cache, sought: Traces, exports: Path | None) -> Found:
    """Look for it. Raises RedisError where Redis is away, OSError where a file cannot be read."""
    if not sought.words and not sought.authors:
        return Found()
    tables = dict(await value(connection, "SELECT find_words(%s, %s)", (list(sought.words), list(sought.agents))))
    tables["redis"] = await cache.holding(sought.words, sought.agents)
    files, own = _files(exports, sought) if exports is not None else ((), ())
    return Found(tables, files, own)


async def everywhere(connection: Connection, cache: Cache, words: Sequence[str], exports: Path) -> Found:
    """Where words stand, whosever they are: all tables, Redis and the export folder."""
    folded = [word.lower() for word in words]
    tables = dict(await value(connection, "SELECT find_words(%s)", (folded,)))
    tables["redis"] = await cache.holding(folded, None)
    return Found(
        tables, tuple(str(path) for path in _exported(exports) if _holds(path.read_text("utf-8", "replace").lower(), folded))
    )


def _files(exports: Path, sought: Traces) -> tuple[tuple[str, ...], tuple[str, ...]]:
    own = {path.stem for path in _exported(exports) if path.suffix == ".json" and _of(path) & set(sought.authors)}
    words = (*sought.words, *sought.single, *(json.dumps(author).lower() for author in sought.authors))
    # An export is two files that say the same, one of them with the names of authors.
    theirs = {path.stem for path in _exported(exports) if _holds(path.read_text("utf-8", "replace").lower(), words)} - own
    paths = _exported(exports)
    return tuple(str(path) for path in paths if path.stem in theirs), tuple(str(path) for path in paths if path.stem in own)


def _exported(exports: Path) -> list[Path]:
    return sorted(path for path in exports.iterdir() if path.is_file()) if exports.is_dir() else []


def _of(path: Path) -> set[str]:
    """Whose export a file is."""
    try:
        found = json.loads(path.read_text("utf-8")).get("identities", [])
        return {f"{each['platform']}:{each['realm']}:{each['user_id']}" for each in found}
    except (ValueError, AttributeError, KeyError, TypeError):
        return set()


def _holds(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)
