"""The one authoriser: who may do what to whose memory. Pure; messages, commands, buttons and modals all ask here.

yourself   everything with your own memory; all of it in your own direct message, elsewhere what may be used there
admin      of a workspace: see and delete what came from that workspace, direct messages excepted
operator   named in config.yaml or at the operator's command line: across people; every act is logged
anybody    help
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from memory.log import Actor as Role

Action = Literal["help", "view", "search", "forget", "export", "stop", "retry", "fresh", "status", "press", "replay"]
_ADMINS = frozenset({"view", "search", "forget"})
_ACROSS = frozenset({"view", "search", "forget", "export", "stop", "status", "replay"})


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: `person` is their `platform:realm:user`, `agent` their own agent if they have one.

    `admin_of` holds the workspaces whose admins they are, as their platform says now.
    """

    person: str
    agent: int | None = None
    operator: bool = False
    admin_of: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Target:
    """What is acted on: an agent's memory, asked about at a place.

    `own_direct`: the place is a direct message of that agent's person. `workspace` is where the rows came from, None for all of
    them. `direct`: the rows came from a direct message. `made_for`: whose button it is.
    """

    agent: int | None = None
    own_direct: bool = False
    workspace: str | None = None
    direct: bool = False
    made_for: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it may be done.

    `everything`: in all of the agent's places, else only what is usable at the place. `role` is for the log, `why` for the person.
    """

    allowed: bool
    everything: bool = False
    role: Role = "person"
    why: str = ""


def may(actor: Actor, action: Action, target: Target) -> Verdict:
    """Decide one act. A refusal says why in words for the person."""
    if action == "press":
        mine = target.made_for is not None and target.made_for == actor.person
        return Verdict(mine, why="" if mine else "This button was made for somebody else.")
    if action == "help":
        return Verdict(True)
    if action != "replay" and target.agent == actor.agent:  # None on both sides: a stranger, of whom there is nothing yet
        return Verdict(True, everything=target.own_direct)
    if actor.operator and action in _ACROSS:
        return Verdict(True, everything=True, role="operator")
    if action in _ADMINS and target.workspace and target.workspace in actor.admin_of:
        if target.direct:
            return Verdict(False, why="Direct messages are not a workspace's own.")
        return Verdict(True, role="admin")
    return Verdict(False, why="That is somebody else's memory." if target.agent is not None else "Only the operator may do that.")


def is_operator(person: str, operators: Collection[str]) -> bool:
    """Whether a person is named as an operator in the configuration."""
    return person in operators
