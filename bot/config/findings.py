"""One finding of a check: whether something is right, and what to do when it is not."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` names the thing and how it is; `remedy` says what to do, empty when all is well. `fatal`: the bot cannot run so.

    `fixes`: the settings that mend it, by `section.key`, where settings do. `passing`: it may be well again by itself.
    """

    well: bool
    what: str
    remedy: str = ""
    fatal: bool = True
    fixes: Mapping[str, object] = field(default_factory=dict)
    passing: bool = False


class StartError(Exception):
    """The bot cannot start; the text is one line that names the key and what to do. Exit code 2."""


class Away(StartError):
    """The bot cannot start now: the database or Redis does not answer, which may pass."""


def right(what: str) -> Finding:
    """Something is as it should be."""
    return Finding(True, what)


def wrong(
    what: str, remedy: str, *, fatal: bool = True, fixes: Mapping[str, object] | None = None, passing: bool = False
) -> Finding:
    """Something is not."""
    return Finding(False, what, remedy, fatal, fixes or {}, passing)
