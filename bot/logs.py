"""The log: structlog on top of the standard `logging`, with nothing of what people say in it.

What may stand in a line is decided here, not where it is written:

- our own events are constant texts with small values; a text value longer than `LONGEST` becomes its length, and so does any
  value under a name in `SPOKEN`;
- of an exception its class and the places in the code, never its message, which often quotes data; only a `Tellable` one, whose
  text is made without data, is written out when it is a value;
- of a foreign library only that it logged, where, and the class of its exception.
"""

import logging
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LONGEST = 80
"""Characters of the longest text value in a line: ids, names of functions, error classes and remedies fit."""
LONGEST_EVENT = 400
LONGEST_ERROR = 200
"""Characters of the text of a `Tellable` error."""
SPOKEN = frozenset(
    {
        "text",
        "content",
        "body",
        "message",
        "messages",
        "prompt",
        "reply",
        "query",
        "arguments",
        "payload",
        "before",
        "after",
        "reason_text",
    }
)
OWN = ("bot", "memory", "adapters")
QUIET = ("psycopg.pool", "apscheduler")
"""Libraries that repeat a warning every second while a service is away; our own loops say it once."""
_SECRET = re.compile(r"(://[^:/@\s]*:)[^@\s]+@|\b(sk-|xox[abp]-|xapp-)[A-Za-z0-9_-]{6,}")


class Tellable(Exception):
    """An error whose text holds, by construction, nothing that people say and no secret: the log writes it out."""


def configure(*, level: str = "info", style: Literal["text", "json"] = "text", file: Path | None = None) -> None:
    """Send all logging to standard error, or to a file (0600) so that a terminal chat stays clean."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        handler = logging.FileHandler(file, encoding="utf-8")
    last: Processor = structlog.processors.JSONRenderer() if style == "json" else structlog.dev.ConsoleRenderer(colors=False)
    shared: list[Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _from_record],
            pass_foreign_args=True,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, nothing_said, last],
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in OWN:
        logging.getLogger(name).setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)


def file() -> Path | None:
    """Where the log goes, None for standard error."""
    found = [handler for handler in logging.getLogger().handlers if isinstance(handler, logging.FileHandler)]
    return Path(found[0].baseFilename) if found else None


def nothing_said(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The last processor: cuts down every value that may be somebody's words or a secret."""
    error = event.pop("exc_info", None)
    event.pop("stack_info", None)
    clean: EventDict = {key: _value(key, value) for key, value in event.items()}
    clean["event"] = _SECRET.sub(r"\1\2***", " ".join(str(event.get("event", "")).split()))[:LONGEST_EVENT]
    if error is True:
        error = sys.exc_info()
    if isinstance(error, BaseException):
        error = (type(error), error, error.__traceback__)
    if isinstance(error, tuple) and error[0] is not None:
        clean["error"], clean["where"] = error[0].__name__, frames(error[2])
    return clean


def frames(trace: TracebackType | None, last: int = 6) -> str:
    """Where an exception came from: file, line and function of its last frames, without any value."""
    found = traceback.extract_tb(trace)[-last:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(found))


def _value(key: str, value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, Tellable):
        return _SECRET.sub(r"\1\2***", " ".join(str(value).split()))[:LONGEST_ERROR]
    if isinstance(value, BaseException):
        return type(value).__name__
    text = str(value)
    if key in SPOKEN or (len(text) > LONGEST and key not in ("event", "where", "timestamp")):
        return f"<{len(text)} characters>"
    return _SECRET.sub(r"\1\2***", " ".join(text.split()))


def _from_record(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A line of the standard `logging`: ours keep their text with shortened arguments, foreign ones keep their origin only."""
    record: logging.LogRecord = event["_record"]
    if record.exc_info:
        event["exc_info"] = record.exc_info
    if record.name.split(".")[0] not in OWN:
        event.pop("positional_args", None)
        event["event"] = f"{record.module}:{record.lineno} {record.funcName}"
        return event
    arguments = event.pop("positional_args", ())
    if arguments and "%" in str(record.msg):
        try:
            shortened = (
                {key: _value(key, value) for key, value in arguments.items()}
                if isinstance(arguments, Mapping)
                else tuple(_value("", value) for value in arguments)
            )
            event["event"] = str(record.msg) % shortened
        except (TypeError, ValueError):
            event["event"] = str(record.msg)
    return event
