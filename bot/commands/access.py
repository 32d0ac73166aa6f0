"""The one authoriser: who may do what to whose memory. Pure; messages, commands, buttons and modals all ask here.

yourself   everything with your own memory; all of it in your own direct message, elsewhere what may be used there
admin      of a workspace: see, export and delete what came from that workspace, direct messages excepted unless the config says so
           (and then people are told); block people there
operator   named in config.yaml or at the operator's command line: across people; every act is logged
anybody    help, and who can see what
blocked    one's own rights alone, whoever one is: to see, export, erase and pause what is kept of oneself
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from memory.log import Actor as Role

Action = Literal[
    "help",
    "view",
    "search",
    "forget",
    "export",
    "change",
    "pause",
    "settings",
    "link",
    "stop",
    "retry",
    "reminders",
    "fresh",
    "status",
    "press",
    "replay",
    "usage",
    "hold",
    "block",
]
_ADMINS = frozenset({"view", "search", "forget", "export"})
_ACROSS = frozenset({"view", "search", "forget", "export", "stop", "status", "replay", "usage", "hold", "block"})
_OVERSIGHT = frozenset({"usage", "block"})
"""What an admin may do about people in their workspace without looking into anybody's memory."""
_DUTIES = frozenset({"replay", "usage", "hold", "block"})
"""What nobody may do by being the person themselves."""
_WHILE_BLOCKED = frozenset({"help", "view", "search", "forget", "export", "pause", "stop"})
"""What stays a person's right when they are blocked, with their own memory."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: `person` is their `platform:realm:user`, `agent` their own agent if they have one.

    `admin_of` holds the workspaces whose admins they are, as their platform says now; `sees_direct`: the config counts direct
    messages within a workspace as its own. `blocked`: they are blocked where they ask, which ends their rights over others.
    """

    person: str
    agent: int | None = None
    operator: bool = False
    admin_of: frozenset[str] = field(default_factory=frozenset)
    sees_direct: bool = False
    blocked: bool = False

    @property
    def oversees(self) -> bool:
        """Whether there is anybody besides themselves whom they may do something to."""
        return not self.blocked and (self.operator or bool(self.admin_of))


@dataclass(frozen=True, slots=True)
class Target:
    """What is acted on: an agent's memory, asked about at a place.

    `own_direct`: the place is a direct message of that agent's person. `workspace` is where the rows came from, None for all of
    them. `direct`: the rows came from a direct message. `made_for`: whose button it is. `somebody`: it is about another person, before
    it is known who that is.
    """

    agent: int | None = None
    own_direct: bool = False
    workspace: str | None = None
    direct: bool = False
    made_for: str | None = None
    somebody: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it may be done.

    `everything`: in all of the agent's places, else only what is usable at the place; `workspace`: only what came from there, and with
    `direct` also from direct messages within it. `role` is for the log, `why` for the person: a line of the catalogue.
    """

    allowed: bool
    everything: bool = False
    role: Role = "person"
    why: str = ""
    workspace: str | None = None
    direct: bool = False


def may(actor: Actor, action: Action, target: Target) -> Verdict:
    """Decide one act. A refusal says why."""
    if action == "press":
        mine = target.made_for is not None and target.made_for == actor.person
        return Verdict(mine, why="" if mine else "access.another_button")
    if actor.blocked and (action not in _WHILE_BLOCKED or target.somebody or target.agent != actor.agent):
        return Verdict(False, why="access.blocked")
    if action == "help":
        return Verdict(True)
    # None on both sides: a stranger, of whom there is nothing yet.
    if action not in _DUTIES and not target.somebody and target.agent == actor.agent:
        return Verdict(True, everything=target.own_direct)
    if actor.operator and action in _ACROSS:
        return Verdict(True, everything=True, role="operator")
    if action in _ADMINS | _OVERSIGHT and target.workspace and target.workspace in actor.admin_of:
        if target.direct and not actor.sees_direct:
            return Verdict(False, why="access.not_the_workspaces")
        return Verdict(True, role="admin", workspace=target.workspace, direct=actor.sees_direct)
    if target.somebody and action not in _DUTIES - _OVERSIGHT:
        return Verdict(False, why="access.admins_only")
    if target.agent is None or action in _DUTIES:
        return Verdict(False, why="access.operator_only")
    return Verdict(False, why="access.somebody_elses")


def is_operator(person: str, operators: Collection[str]) -> bool:
    """Whether a person is named as an operator in the configuration."""
    return person in operators


def admin_of(user: str, roles: Collection[str], workspace: str, admins: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The workspace they act in, if the configuration names them or a role that they have there now; nothing else, ever."""
    named = admins.get(workspace, ()) if workspace else ()
    return frozenset({workspace}) if user in named or any(role in named for role in roles) else frozenset()
