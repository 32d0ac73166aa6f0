"""What people may ask for by a line that begins with a slash: the same bodies on every platform.

    context       the parts a command uses, and who asks where
    things        how people name what is remembered: w3, m12
    paging        long answers in pages
    memory        /memory view, search and changes
    why           /memory why
    forgetting    /memory forget; `erasing` has the rows
    changing      /memory correct, share, unshare and undo
    pausing       /memory pause and resume
    exporting     /memory export
    documents     /documents
    reminders     /reminders
    settings      /settings
    linking       /link and /unlink
    conversation  /stop, /retry, /fresh
    status        /status, /whoami
    admin         /admin, for operators and a workspace's admins

To add a command: write its body in the module of its subject and give it a line in `COMMANDS` here.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from psycopg.errors import ForeignKeyViolation

from adapters.base import Answer, Person, PlaceOf
from adapters.catalogue import say
from bot.commands import (
    admin,
    changing,
    conversation,
    documents,
    exporting,
    forgetting,
    linking,
    memory,
    pausing,
    reminders,
    settings,
    status,
    why,
)
from bot.commands.access import Action, Actor, Target, may
from bot.commands.context import NOBODY, Asking, CommandRefused, Parts, ask
from bot.commands.paging import spelled
from memory.people import find_agent
from memory.sanitise import clean

__all__ = ["COMMANDS", "Asking", "Command", "CommandRefused", "Parts", "ask", "find_agent", "help_text", "run"]

Body = Callable[[Asking], Awaitable[str | Answer]]


@dataclass(frozen=True, slots=True)
class Command:
    """A command by its name (one to three words), an example, and what the authoriser is asked.

    `somebody`: it is about other people, and nobody but operators and admins gets as far as its body.
    """

    name: str
    example: str
    action: Action
    body: Body
    somebody: bool = False

    @property
    def line(self) -> str:
        """The line of the catalogue that says what it does: `/memory view` has `does.memory_view`."""
        return f"does.{self.name.removeprefix('/').replace(' ', '_')}"

    def does(self, locale: str | None) -> str:
        """What it does, in a line."""
        return say(self.line, locale)


async def _help(asking: Asking) -> str:
    return help_text(asking.where.platform, asking.locale, admins=asking.actor.oversees, about=asking.argument)


COMMANDS: tuple[Command, ...] = (
    Command("/help", "/help", "help", _help),
    Command("/memory view", "/memory view w3", "view", memory.view),
    Command("/memory search", "/memory search birthday", "search", memory.search),
    Command("/memory why", "/memory why", "view", why.why),
    Command("/memory forget", "/memory forget m12", "forget", forgetting.forget),
    Command("/memory correct", "/memory correct w3 Has a cat called Miso.", "change", changing.correct),
    Command("/memory changes", "/memory changes page 2", "view", memory.changes),
    Command("/memory undo", "/memory undo 17", "change", changing.take_back),
    Command("/memory share", "/memory share w3", "change", changing.share),
    Command("/memory unshare", "/memory unshare w3", "change", changing.unshare),
    Command("/memory pause", "/memory pause", "pause", pausing.pause),
    Command("/memory resume", "/memory resume", "pause", pausing.resume),
    Command("/memory export", "/memory export json", "export", exporting.export),
    Command("/reminders", "/reminders", "reminders", reminders.reminders),
    Command("/reminders move", "/reminders move t3 tomorrow at 9", "reminders", reminders.move),
    Command("/reminders snooze", "/reminders snooze t3 10", "reminders", reminders.snooze),
    Command("/reminders done", "/reminders done t3", "reminders", reminders.done),
    Command("/reminders stop", "/reminders stop t3", "reminders", reminders.stop),
    Command("/reminders cancel", "/reminders cancel t3", "reminders", reminders.cancel),
    Command("/documents", "/documents", "view", documents.listed),
    Command("/documents add", "/documents add handbook.pdf", "change", documents.add),
    Command("/documents read", "/documents read handbook.pdf 12", "view", documents.read),
    Command("/documents share", "/documents share handbook.pdf", "change", documents.share),
    Command("/documents unshare", "/documents unshare handbook.pdf", "change", documents.unshare),
    Command("/documents remove", "/documents remove handbook.pdf", "forget", documents.remove),
    Command("/stop", "/stop", "stop", conversation.stop),
    Command("/retry", "/retry", "retry", conversation.retry),
    Command("/fresh", "/fresh", "fresh", conversation.fresh),
    Command("/settings", "/settings timezone Europe/Berlin", "settings", settings.settings),
    Command("/link", "/link K7QM2XPA", "link", linking.link),
    Command("/unlink", "/unlink slack:T024BE7LD:U061F7AUR", "link", linking.unlink),
    Command("/whoami", "/whoami", "help", status.whoami),
    Command("/status", "/status", "status", status.status),
    Command("/admin memory view", "/admin memory view @ada", "view", admin.view, somebody=True),
    Command("/admin memory export", "/admin memory export @ada", "export", admin.export, somebody=True),
    Command("/admin memory delete", "/admin memory delete @ada", "forget", admin.delete, somebody=True),
    Command("/admin usage", "/admin usage @ada", "usage", admin.usage, somebody=True),
    Command("/admin pause", "/admin pause @ada", "hold", admin.pause, somebody=True),
    Command("/admin block", "/admin block @ada", "block", admin.block, somebody=True),
    Command("/admin who", "/admin who", "help", admin.who),
)
"""The bodies under /admin ask the authoriser once more when they know who it is about."""
QUIT = "/quit"
"""The terminal's own command; its adapter handles it."""
SHORT = {"/memory": "/memory view"}
GROUPS = (
    ("help.memory", "/memory"),
    ("help.documents", "/documents"),
    ("help.reminders", "/reminders"),
    ("help.conversation", ""),
    ("help.oversight", "/admin"),
)


def help_text(platform: str, locale: str | None = None, *, admins: bool = True, about: str = "") -> str:
    """The commands in groups, one a line, with an example where it says more than the name.

    In the terminal the examples would break the lines: they come below them, and only for what is asked `about` (`/help memory`).
    """
    rows = [(command.name, command.does(locale), command.example) for command in COMMANDS if command.name != "/help"]
    terminal, word = platform == "console", " ".join(about.split()).casefold().removeprefix("/")
    if terminal:
        rows.append((QUIT, say("does.quit", locale), QUIT))
    asked = [
        row for row in rows if word and word in row[0] and (admins or not row[0].startswith("/admin") or row[0] == "/admin who")
    ]
    if asked:
        return "\n".join(f"{name}  {what}{f'{chr(10)}    {example}' if example != name else ''}" for name, what, example in asked)
    width = max(len(name) for name, _, _ in rows)
    lines = []
    for title, prefix in GROUPS:
        if prefix == "/admin" and not admins:
            rows = [row for row in rows if row[0] == "/admin who" or not row[0].startswith("/admin")]
        others = tuple(other for _, other in GROUPS if other and not prefix)
        own = [row for row in rows if row[0].startswith(prefix) and not row[0].startswith(others)]
        lines += [say("help.admins" if admins and prefix == "/admin" else title, locale)]
        for name, what, example in own:
            lines.append(f"  {name:<{width}}  {what}{f' ({example})' if example != name and not terminal else ''}")
    return "\n".join([*lines, say("help.examples" if terminal else "help.this_list", locale)])


def find(line: str) -> tuple[Command | None, str]:
    """The command of a line and what follows its name; None when no command has that name."""
    words = line.split()
    for count in (3, 2, 1):
        name = " ".join(words[:count]).casefold()
        name = SHORT.get(name, name) if len(words) <= count else name
        for command in COMMANDS:
            if command.name == name:
                rest = line.split(maxsplit=count)
                return command, rest[count] if len(rest) > count else ""
    return None, ""


async def run(parts: Parts, person: Person, where: PlaceOf, line: str, *, made_for: str | None = None) -> Answer | None:
    """Run a command line for a person at a place; None when the text is no command. What a person gets wrong is an answer, no error.

    `made_for`: for a pressed button, the `author_id` of the person it was made for.
    """
    said = await _said(parts, person, where, line, made_for)
    answer = Answer(said) if isinstance(said, str) else said
    return spelled(answer) if answer is not None and where.platform == "console" else answer


async def _said(parts: Parts, person: Person, where: PlaceOf, line: str, made_for: str | None) -> str | Answer | None:
    if made_for is not None and not (verdict := may(Actor(person.author_id), "press", Target(made_for=made_for))).allowed:
        return say(verdict.why, person.locale)
    line = clean(line).strip()
    if not line.startswith("/"):
        return None
    command, argument = find(line)
    if command is None:
        return _unknown(line.split(), person.locale)
    asking = await ask(parts, person, where, argument)
    try:
        asking.allowed(command.action, somebody=command.somebody)
        return await command.body(asking)
    except CommandRefused as refused:
        return refused.text(asking.locale)
    except ForeignKeyViolation:  # erased, or linked, while they asked
        if await find_agent(parts.db, person.platform, person.realm, person.user_id) == asking.agent:
            raise
        return asking.say(NOBODY)
    finally:
        parts.health.count("command")


def _unknown(words: list[str], locale: str | None) -> str | None:
    first = words[0].casefold()
    group = [command.name for command in COMMANDS if command.name.startswith(f"{first} ")]
    if group:
        return say("command.group", locale, names=", ".join(group))
    # A path or a smiley is no command: only a single word of letters is taken for a mistyped one.
    return say("command.unknown", locale, word=words[0]) if first[1:].isalpha() else None
