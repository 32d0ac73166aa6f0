"""What to keep: one pure decision per candidate memory, before anything is stored.

    keep        or not: small talk, secrets, somebody else's words that are not said to be theirs
    layer       working context for what must always be in view, archival storage for what is long
    sensitive   the kind that needs the person's yes first
    conflicts   entries usable in this place that say something else about the same thing

Words decide, by the lists in `keeping.yaml`; the filter model may judge beside them (`bot.keeping.keeper`): it may add care and doubt, never
take any away. Everything is decided from what this place may see, so that nothing of another place shows through.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

import yaml

from bot.config.keeping import KINDS, Sensitive
from bot.words.secrets import secrets
from memory.archival_storage import same_memory

Layer = Literal["working_context", "archival_storage"]
LONG = 300
"""Characters above which a text is for archival storage."""
COVERED = 0.7
"""Share of a text's own words that must stand in somebody's words, for it to be theirs."""
ALIKE = 0.6
"""Share of common words from which two entries speak of the same thing."""
STEM = 4
"""Characters of a word's beginning by which it is found again in another form."""
_WORDS = Path(__file__).with_name("keeping.yaml")


@dataclass(frozen=True, slots=True)
class Said:
    """Somebody's words; `author_id` empty: the person's own."""

    text: str
    author_id: str = ""
    author_name: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the filter model made of a candidate."""

    worth: bool = True
    sensitive: Sensitive | None = None


@dataclass(frozen=True, slots=True)
class KeepingRules:
    """What the operator chose: kinds that need a yes, and for how many seconds it may be given."""

    sensitive: tuple[Sensitive, ...] = ()
    answer_within: float = 86_400.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """What becomes of a candidate. `why` is for the model; `author_id` whose words it repeats, where they are somebody else's."""

    keep: bool
    layer: Layer = "working_context"
    sensitive: Sensitive | None = None
    conflicts: tuple[str, ...] = ()
    author_id: str = ""
    why: str = ""

    @property
    def ask(self) -> bool:
        """It may be stored only after the person's yes."""
        return self.keep and self.sensitive is not None


@dataclass(frozen=True, slots=True)
class Around:
    """What a decision looks at: the place's entries, and what the person and others said in the queue."""

    entries: Sequence[str] = ()
    own: Sequence[Said] = ()
    others: Sequence[Said] = field(default=())


def decide(text: str, around: Around, rules: KeepingRules, judged: Judged | None = None, tags: Sequence[str] = ()) -> Candidate:
    """Decide about one candidate memory; `tags` are stored with it, so they are looked at as it is."""
    layer: Layer = "archival_storage" if len(text) > LONG or text.count(". ") >= 3 else "working_context"
    whole = "\n".join([text, *tags])
    if found := secrets(whole):
        kinds = ", ".join(dict.fromkeys(each.kind for each in found))
        return Candidate(False, layer, why=f"This holds a secret ({kinds}), and such things are never stored. Leave it out.")
    if not worth_keeping(text) or (judged is not None and not judged.worth):
        return Candidate(
            False, layer, why="This is no lasting fact. The conversation itself is in recall storage; store nothing."
        )
    speaker = others_words(text, around.own, around.others)
    if speaker is not None and not _names(text, speaker):
        who = speaker.author_name or "somebody else"
        return Candidate(
            False, layer, why=f"{who} said this, not the person. Store it only as {who}'s words, by name, or not at all."
        )
    kind = sensitive_kind(whole, rules.sensitive)
    if kind is None and judged is not None and judged.sensitive in rules.sensitive:
        kind = judged.sensitive
    conflicts = tuple(entry for entry in around.entries if in_conflict(text, entry))
    return Candidate(True, layer, kind, conflicts, speaker.author_id if speaker else "")


def worth_keeping(text: str) -> bool:
    """Whether a text is more than a greeting, thanks, a question asked in passing or the state of a moment."""
    plain = " ".join(_folded(text).split()).strip(" .!?")
    if len(plain) < 3:
        return False
    return not any(pattern.search(plain) for pattern in _patterns()["passing"])


def sensitive_kind(text: str, kinds: Iterable[Sensitive] = KINDS) -> Sensitive | None:
    """The first of the kinds that a text touches, by words."""
    folded = _folded(text)
    return next((kind for kind in kinds if any(pattern.search(folded) for pattern in _patterns()[kind])), None)


def keyword_heuristic(text: str) -> bool:
    """The seeds' heuristic, as the baseline of what is measured: keep what says so itself."""
    lower = text.lower()
    return "remember" in lower or "i prefer" in lower or "my name is" in lower


def others_words(text: str, own: Sequence[Said], others: Sequence[Said]) -> Said | None:
    """Whose words a text repeats, if they are somebody else's and not the person's own too."""
    wanted = content_words(text)
    if len(wanted) < 3 or not others:
        return None
    best = max(others, key=lambda said: _share(wanted - content_words(said.author_name), content_words(said.text)))
    theirs = _share(wanted - content_words(best.author_name), content_words(best.text))
    mine = _share(wanted, content_words(" ".join(said.text for said in own)))
    return best if theirs >= COVERED and mine < COVERED and theirs > mine else None


def unfounded(text: str, sources: Iterable[str]) -> bool:
    """Whether not one of a text's own words occurs in anything that it could come from: it was made up, or is from an example.

    Words are compared by their beginnings. A text in a script that the sources do not use cannot be compared.
    """
    wanted, there = _stems(text), _stems(" ".join(sources))
    same_script = {_script(stem) for stem in wanted} & {_script(stem) for stem in there}
    return bool(wanted) and bool(same_script) and not wanted & there


def _stems(text: str) -> frozenset[str]:
    words = content_words(text)
    # Where words are written without blanks between them, each pair of characters is as good as one.
    unspaced = (word for word in words if _script(word) == "unspaced")
    pairs = {word[at : at + 2] for word in unspaced for at in range(max(1, len(word) - 1))}
    return frozenset(pairs | {word[:STEM] for word in words if _script(word) != "unspaced"})


def _script(word: str) -> str:
    """The script of a word by its first character: enough to tell what can be compared with what."""
    if "\u2e80" <= word[0] <= "\ud7ff" or "\u0e00" <= word[0] <= "\u0eff":
        return "unspaced"
    return "digits" if word[0].isdigit() else unicodedata.name(word[0], "?").split()[0]


def in_conflict(text: str, entry: str) -> bool:
    """Whether two texts speak of the same thing and differ in what they say: a number, a name, a negation, a word."""
    a, b = content_words(text), content_words(entry)
    if len(a) < 2 or len(b) < 2 or same_memory(text, entry):
        return False
    return len(a & b) / len(a | b) >= ALIKE or (len(a) == len(b) and len(a & b) == len(a) - 1)


def content_words(text: str) -> frozenset[str]:
    """A text's words without those that every text has; a plural s and accents do not count."""
    words = (word for word in re.findall(r"[^\W_]+", _folded(text)))
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words) - _common()


def _names(text: str, said: Said) -> bool:
    name = content_words(said.author_name)
    return bool(name) and bool(name & content_words(text))


def _share(wanted: frozenset[str], there: frozenset[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0


def _folded(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


@cache
def _lists() -> Mapping[str, Sequence[str]]:
    lists: Mapping[str, Sequence[str]] = yaml.safe_load(_WORDS.read_text("utf-8"))
    return lists


@cache
def _common() -> frozenset[str]:
    return frozenset(word for line in _lists()["common"] for word in line.split())


@cache
def _patterns() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    """Each kind's patterns; a line is an expression that begins at a word's beginning."""
    return {
        kind: tuple(re.compile(line if line.startswith("^") else rf"\b(?:{line})") for line in map(_folded_pattern, lines))
        for kind, lines in _lists().items()
        if kind != "common"
    }


def _folded_pattern(line: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", line) if not unicodedata.combining(c))
