"""Long answers in pages that a message of any platform holds, with buttons that lead on; on the console, the lines to type."""

import re
from collections.abc import Sequence

from adapters.base import LONGEST_LINE, Answer, Button
from bot.commands.context import Asking

PAGE = 1800
"""Characters of a page; Discord's messages hold 2,000."""


def paged(argument: str) -> tuple[str, int]:
    """An argument without the `page 2` at its end, and the number of the page (1 where none is asked for)."""
    found = re.fullmatch(r"(?:(.*\S)\s+)?page\s+(\d{1,4})", argument.strip(), re.IGNORECASE | re.DOTALL)
    return (found[1] or "", max(1, int(found[2]))) if found else (argument.strip(), 1)


def pages(lines: Sequence[str], longest: int = PAGE) -> list[list[str]]:
    """Lines in pages of at most so many characters. A page that begins under a heading (a line without indent) repeats it."""
    made: list[list[str]] = [[]]
    heading = ""
    for line in lines:
        line = line[:longest]
        if made[-1] and sum(len(each) + 1 for each in made[-1]) + len(line) > longest:
            again = f"{heading[:200]} …"
            made.append([again] if line.startswith(" ") and heading else [])
        made[-1].append(line)
        if not line.startswith(" "):
            heading = line
    return made


def page_of(asking: Asking, lines: Sequence[str], number: int, line: str, extra: Sequence[Button] = ()) -> Answer:
    """One page of an answer. `line` is the command that shows it, to which `page 2` is appended; `extra` follows Back and More."""
    every = pages(lines)
    number = min(number, len(every))
    text = "\n".join(every[number - 1])
    if len(every) > 1:
        text += "\n" + asking.say("paging.page", number=number, pages=len(every))
    return Answer(text, (*turning(asking, number, len(every), line), *extra))


def turning(asking: Asking, number: int, total: int, line: str) -> tuple[Button, ...]:
    """The buttons to the page before and to the next one, where there are such and their line is not too long for one."""
    if len(line) > LONGEST_LINE - len(" page 1234"):
        return ()
    back = [Button(asking.say("button.back"), f"{line} page {number - 1}")] if number > 1 else []
    return (*back, *([Button(asking.say("button.more"), f"{line} page {number + 1}")] if number < total else []))


def spelled(answer: Answer) -> Answer:
    """The answer for a platform without buttons: what they would do, as lines to type."""
    if not answer.buttons:
        return answer
    lines = [f"{button.label}: {button.line}{f' {button.ask.upper()}' if button.ask else ''}" for button in answer.buttons]
    return Answer(answer.text + "\n" + "\n".join(lines), answer.buttons)
