"""What people may ask for by a line that begins with a slash: the same bodies on every platform.

    context       the parts a command uses, and who asks where
    memory        /memory view and search
    forgetting    /memory forget
    exporting     /memory export
    conversation  /stop, /retry, /fresh
    status        /status, /whoami

To add a command: write its body in the module of its subject and give it a line in `COMMANDS` here.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from adapters.base import Answer, Person, PlaceOf
from bot.access import Action, Actor, Target, may
from bot.commands import conversation, exporting, forgetting, memory, status
from bot.commands.context import Asking, CommandRefused, Parts, ask, find_agent

__all__ = ["COMMANDS", "Asking", "Command", "CommandRefused", "Parts", "ask", "find_agent", "help_text", "run"]

Body = Callable[[Asking], Awaitable[str | Answer]]


@dataclass(frozen=True, slots=True)
class Command:
    """A command by its name (one or two words), what it does in a line, an example, and what the authoriser is asked."""

    name: str
    does: str
    example: str
    action: Action
    body: Body


async def _help(asking: Asking) -> str:
    return help_text(asking.where.platform)


COMMANDS: tuple[Command, ...] = (
    Command("/help", "this list", "/help", "help", _help),
    Command("/memory view", "what I remember about you, with sources and dates", "/memory view", "view", memory.view),
    Command(
        "/memory search",
        "look for something in everything we said and stored",
        "/memory search birthday",
        "search",
        memory.search,
    ),
    Command("/memory forget", "forget one thing by its number, or everything", "/memory forget m12", "forget", forgetting.forget),
    Command("/memory export", "everything I keep of you, as JSON and to read", "/memory export", "export", exporting.export),
    Command("/stop", "stop the answer that is being made", "/stop", "stop", conversation.stop),
    Command("/retry", "answer your last message again", "/retry", "retry", conversation.retry),
    Command("/fresh", "begin a new conversation without forgetting", "/fresh", "fresh", conversation.fresh),
    Command("/whoami", "whom I take you for, and what I may use here", "/whoami", "help", status.whoami),
    Command("/status", "how I am: model, memory, what waits", "/status", "status", status.status),
)
QUIT = ("/quit", "leave (the terminal only)", "/quit")
"""The terminal's own command; its adapter handles it."""
SHORT = {"/memory": "/memory view"}


def help_text(platform: str) -> str:
    """The commands, one a line, with an example where it says more than the name."""
    rows = [(command.name, command.does, command.example) for command in COMMANDS]
    if platform == "console":
        rows.append(QUIT)
    width = max(len(name) for name, _, _ in rows)
    return "\n".join(f"{name:<{width}}  {does}{f' (e.g. {example})' if example != name else ''}" for name, does, example in rows)


def find(line: str) -> tuple[Command | None, str]:
    """The command of a line and what follows its name; None when no command has that name."""
    words = line.split()
    for count in (2, 1):
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
    return Answer(said) if isinstance(said, str) else said


async def _said(parts: Parts, person: Person, where: PlaceOf, line: str, made_for: str | None) -> str | Answer | None:
    if made_for is not None and not (verdict := may(Actor(person.author_id), "press", Target(made_for=made_for))).allowed:
        return verdict.why
    line = line.strip()
    if not line.startswith("/"):
        return None
    command, argument = find(line)
    if command is None:
        first = line.split()[0]
        if first.casefold() == "/memory":
            return "There is /memory view, /memory search WORDS, /memory forget NUMBER and /memory export."
        # A path or a smiley is no command: only a single word of letters is taken for a mistyped one.
        return f"There is no command {first}. /help lists what there is." if first[1:].isalpha() else None
    parts.health.count("command")
    asking = await ask(parts, person, where, argument)
    try:
        asking.allowed(command.action)
        return await command.body(asking)
    except CommandRefused as refused:
        return str(refused)
