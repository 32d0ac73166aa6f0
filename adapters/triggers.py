"""Is a message answered, followed or ignored? The same on every platform. Pure: facts in, a decision with its reason out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Author = Literal["person", "bot", "webhook", "myself"]


@dataclass(frozen=True, slots=True)
class Override:
    """What is listened to in a guild or team; None in an override: as in general."""

    mentions: bool | None = None
    replies: bool | None = None
    threads: bool | None = None


@dataclass(frozen=True, slots=True)
class ListenRules:
    """Where the bot takes part. Ids of guilds or teams and of channels are told apart by nothing, and need not be: they are unique."""

    mentions: bool = True
    replies: bool = True
    threads: bool = True
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    bots: frozenset[str] = frozenset()
    places: Mapping[str, Override] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """What counts of a message.

    `ordinary`: somebody wrote it, it is no notice of the platform. `workspace`: the guild or team. `mentioned`: the bot itself is
    named; @everyone, @here and roles (`mass_mention`) are not that, nor is the ping that a reply to it brings along. `my_thread`: a
    thread that the bot takes part in. `readable`: there is a text, a file or something else to see; false where the message-content
    intent is missing.
    """

    author: Author
    author_id: str
    ordinary: bool = True
    direct: bool = False
    workspace: str = ""
    channel: str = ""
    parent: str = ""
    mentioned: bool = False
    mass_mention: bool = False
    reply_to_me: bool = False
    my_thread: bool = False
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Heard:
    """What becomes of a message. The reason is a short code for counters and the log."""

    kind: Literal["answer", "follow", "ignore"]
    reason: str


def decide(facts: Facts, rules: ListenRules) -> Heard:
    """The first rule that fits."""
    if facts.author == "myself":
        return Heard("ignore", "own_message")
    if not facts.ordinary:
        return Heard("ignore", "platform_notice")
    if facts.author != "person" and facts.author_id not in rules.bots:
        return Heard("ignore", facts.author)
    if facts.direct:
        return Heard("answer", "direct_message")
    here = {facts.workspace, facts.channel, facts.parent} - {""}
    if here & rules.deny:
        return Heard("ignore", "denied_place")
    if rules.allow and not here & rules.allow:
        return Heard("ignore", "not_allowed_place")
    return _in_workspace(facts, listening(facts, rules))


def _in_workspace(facts: Facts, listened: Override) -> Heard:
    if facts.reply_to_me and listened.replies:
        return Heard("answer", "reply")
    if facts.mentioned and listened.mentions:
        return Heard("answer", "mention")
    if facts.my_thread and listened.threads:
        return Heard("follow", "thread") if facts.readable else Heard("ignore", "content_hidden")
    return Heard("ignore", "mass_mention" if facts.mass_mention else "not_addressed")


def listening(facts: Facts, rules: ListenRules) -> Override:
    """What is listened to here: the channel's own choice, else its parent's, else the guild's, else the general one."""
    found = [rules.places[one] for one in (facts.channel, facts.parent, facts.workspace) if one in rules.places]

    def choice(name: str) -> bool:
        chosen = [value for one in found if (value := getattr(one, name)) is not None]
        return bool(chosen[0] if chosen else getattr(rules, name))

    return Override(choice("mentions"), choice("replies"), choice("threads"))
