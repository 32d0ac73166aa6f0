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
from bot.commands import (
    admin,
    changing,
    conversation,
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
    """A command by its name (one to three words), what it does in a line, an example, and what the authoriser is asked.

    `somebody`: it is about other people, and nobody but operators and admins gets as far as its body.
    """

    name: str
    does: str
    example: str
    action: Action
    body: Body
    somebody: bool = False


async def _help(asking: Asking) -> str:
    return help_text(asking.where.platform, admins=asking.actor.oversees, about=asking.argument)


COMMANDS: tuple[Command, ...] = (
    Command("/help", "this list", "/help", "help", _help),
    Command("/memory view", "what I remember about you, with sources and dates", "/memory view w3", "view", memory.view),
    Command(
        "/memory search",
        "look for something in everything we said and stored",
        "/memory search birthday",
        "search",
        memory.search,
    ),
    Command("/memory why", "which memories stood behind my last answer here", "/memory why", "view", why.why),
    Command(
        "/memory forget", "forget one thing, a search, a period, or everything", "/memory forget m12", "forget", forgetting.forget
    ),
    Command("/memory correct", "correct one thing", "/memory correct w3 Has a cat called Miso.", "change", changing.correct),
    Command(
        "/memory changes",
        "what was changed, by whom, and the numbers to undo it",
        "/memory changes page 2",
        "view",
        memory.changes,
    ),
    Command("/memory undo", "undo the last change, or one by its number", "/memory undo 17", "change", changing.take_back),
    Command("/memory share", "let one thing be used in other places too", "/memory share w3", "change", changing.share),
    Command("/memory unshare", "keep one thing to where it came from", "/memory unshare w3", "change", changing.unshare),
    Command("/memory pause", "keep nothing new until you resume", "/memory pause", "pause", pausing.pause),
    Command("/memory resume", "remember again", "/memory resume", "pause", pausing.resume),
    Command("/memory export", "everything I keep of you, as JSON and to read", "/memory export json", "export", exporting.export),
    Command("/reminders", "what I will remind you of, with its numbers", "/reminders", "reminders", reminders.reminders),
    Command("/reminders move", "give one another time", "/reminders move t3 tomorrow at 9", "reminders", reminders.move),
    Command("/reminders snooze", "let one come again in some minutes", "/reminders snooze t3 10", "reminders", reminders.snooze),
    Command("/reminders done", "finish one", "/reminders done t3", "reminders", reminders.done),
    Command("/reminders stop", "let one not come again", "/reminders stop t3", "reminders", reminders.stop),
    Command("/reminders cancel", "cancel one", "/reminders cancel t3", "reminders", reminders.cancel),
    Command("/stop", "stop the answer that is being made", "/stop", "stop", conversation.stop),
    Command("/retry", "answer your last message again", "/retry", "retry", conversation.retry),
    Command("/fresh", "begin a new conversation without forgetting", "/fresh", "fresh", conversation.fresh),
    Command(
        "/settings",
        "time zone, quiet hours, and whether I may write first",
        "/settings timezone Europe/Berlin",
        "settings",
        settings.settings,
    ),
    Command("/link", "make another account of yours one with this", "/link K7QM2XPA", "link", linking.link),
    Command("/unlink", "part linked accounts again", "/unlink slack:T024BE7LD:U061F7AUR", "link", linking.unlink),
    Command("/whoami", "who I think you are, and what I may use here", "/whoami", "help", status.whoami),
    Command("/status", "how I am: model, memory, what waits", "/status", "status", status.status),
    Command("/admin memory view", "what is remembered of somebody", "/admin memory view @ada", "view", admin.view, somebody=True),
    Command(
        "/admin memory export", "all of it, as files or text", "/admin memory export @ada", "export", admin.export, somebody=True
    ),
    Command("/admin memory delete", "erase it", "/admin memory delete @ada", "forget", admin.delete, somebody=True),
    Command(
        "/admin usage", "what model calls cost, of all or of somebody", "/admin usage @ada", "usage", admin.usage, somebody=True
    ),
    Command(
        "/admin pause",
        "pause the memory of somebody or of all (`off` ends it)",
        "/admin pause @ada",
        "hold",
        admin.pause,
        somebody=True,
    ),
    Command(
        "/admin block",
        "stop accepting messages from someone (`off` ends it)",
        "/admin block @ada",
        "block",
        admin.block,
        somebody=True,
    ),
    Command("/admin who", "who can see what", "/admin who", "help", admin.who),
)
"""The bodies under /admin ask the authoriser once more when they know who it is about."""
QUIT = ("/quit", "leave (the terminal only)", "/quit")
"""The terminal's own command; its adapter handles it."""
SHORT = {"/memory": "/memory view"}
GROUPS = (
    ("Your memory", "/memory"),
    ("Your reminders", "/reminders"),
    ("Our conversation", ""),
    ("For operators and admins", "/admin"),
)


def help_text(platform: str, *, admins: bool = True, about: str = "") -> str:
    """The commands in groups, one a line, with an example where it says more than the name.

    In the terminal the examples would break the lines: they come below them, and only for what is asked `about` (`/help memory`).
    """
    rows = [(command.name, command.does, command.example) for command in COMMANDS if command.name != "/help"]
    terminal, word = platform == "console", " ".join(about.split()).casefold().removeprefix("/")
    if terminal:
        rows.append(QUIT)
    asked = [
        row for row in rows if word and word in row[0] and (admins or not row[0].startswith("/admin") or row[0] == "/admin who")
    ]
    if asked:
        return "\n".join(f"{name}  {does}{f'{chr(10)}    {example}' if example != name else ''}" for name, does, example in asked)
    width = max(len(name) for name, _, _ in rows)
    lines = []
    for title, prefix in GROUPS:
        if prefix == "/admin" and not admins:
            rows = [row for row in rows if row[0] == "/admin who" or not row[0].startswith("/admin")]
        others = tuple(other for _, other in GROUPS if other and not prefix)
        own = [row for row in rows if row[0].startswith(prefix) and not row[0].startswith(others)]
        lines += [title if admins or prefix != "/admin" else "Oversight"]
        for name, does, example in own:
            lines.append(f"  {name:<{width}}  {does}{f' (e.g. {example})' if example != name and not terminal else ''}")
    return "\n".join(
        [*lines, "/help memory shows examples of those, /help forget of one." if terminal else "/help shows this list."]
    )


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
        return verdict.why
    line = clean(line).strip()
    if not line.startswith("/"):
        return None
    command, argument = find(line)
    if command is None:
        return _unknown(line.split())
    parts.health.count("command")
    asking = await ask(parts, person, where, argument)
    try:
        asking.allowed(command.action, somebody=command.somebody)
        return await command.body(asking)
    except CommandRefused as refused:
        return str(refused)
    except ForeignKeyViolation:  # erased, or linked, while they asked
        if await find_agent(parts.db, person.platform, person.realm, person.user_id) == asking.agent:
            raise
        return NOBODY


def _unknown(words: list[str]) -> str | None:
    first = words[0].casefold()
    group = [command.name for command in COMMANDS if command.name.startswith(f"{first} ")]
    if group:
        return f"There is {', '.join(group)}. /help says more."
    # A path or a smiley is no command: only a single word of letters is taken for a mistyped one.
    return f"There is no command {words[0]}. /help lists what there is." if first[1:].isalpha() else None
