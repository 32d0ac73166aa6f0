"""The notice of the first contact: once a person, beside the bot's first reply to them, in their language where it is known. It names the host
that receives what they write, and they are told again when that changes.

It is an outbox row of the step that holds the reply, so a crash loses neither or both, and the agent's row says that it went out. No model
is asked. At the terminal nobody gets it: who runs the bot there has its papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from adapters.catalogue import say
from bot.config.sections import ModelSection
from bot.engine.turns import Step
from memory.agent_state import AgentState
from memory.places import Place

STEP = -6
"""The notice's place in the outbox among the lines that no turn's step reaches."""
SILENT = frozenset({"console"})
FALLBACK = "en"
OPENAI = "https://api.openai.com"

_GIVE = """WITH told AS (UPDATE agents SET noticed_at = coalesce(noticed_at, %s), noticed_hosts = %s
    WHERE id = %s AND (noticed_at IS NULL OR noticed_hosts <> %s) RETURNING id)
  INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
    SELECT id, %s, %s, %s, %s, %s, 0, %s, %s FROM told"""
HERE = "this machine"
"""What is kept as the host where no words leave the machine that the bot runs on."""


def hosts_of(model: ModelSection, *, rehearsal: bool) -> tuple[str, ...]:
    """The hosts that receive people's words, by the configuration; empty: this machine alone."""
    first = "" if rehearsal else _host(model.base_url or OPENAI)
    second = _host(model.fallback_url) if model.fallback and model.fallback_url else ""
    return tuple(dict.fromkeys(host for host in (first, second) if host))


def _host(address: str) -> str:
    name = urlsplit(address).hostname or ""
    try:
        local = ip_address(name).is_loopback
    except ValueError:
        local = name == "localhost" or name.endswith(".localhost")
    return "" if local else name


def where(hosts: Sequence[str], locale: str | None) -> str:
    """Where words go, in words: `api.mistral.ai`, `this machine`."""
    return ", ".join(hosts) or say("notice.this_machine", locale)


@dataclass(frozen=True, slots=True)
class Notice:
    """The texts by language, and other ones by workspace. Empty: nobody is told anything.

    `hosts`: who receives people's words (empty: this machine alone; None: nothing is said of it).
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    workspaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hosts: tuple[str, ...] | None = None

    def text(self, place: Place, locale: str) -> str:
        """What somebody is told at a place; empty: nothing. `locale` is as the platform writes it: `de`, `pt-BR`, `en_US`."""
        if place.platform in SILENT:
            return ""
        texts = self.workspaces.get(place.workspace, self.texts) if place.workspace else self.texts
        whole = locale.replace("_", "-").casefold()
        known = {name.replace("_", "-").casefold(): text for name, text in texts.items()}
        return next((known[name] for name in (whole, whole.split("-")[0], FALLBACK) if name in known), "").strip()

    def give(self, step: Step, state: AgentState) -> AgentState:
        """Put it beside the reply of a step, if this person never got one; or else where their words go, if that is news to them."""
        goes = "" if self.hosts is None else ", ".join(self.hosts) or HERE
        if state.noticed and state.hosts == goes:
            return state
        text = self.text(state.place, state.locale)
        if not text:
            return state
        if goes:
            said = say("notice.host", state.locale, host=where(self.hosts or (), state.locale))
            text = said if state.noticed else f"{text} {said}"
        claim = step.claim
        beside = (claim.place, claim.platform, claim.channel, claim.turn, STEP, text, step.now)
        step.later(_GIVE, (step.now, goes, claim.agent, goes, *beside))
        step.parts += 1
        return replace(state, noticed=True, hosts=goes)
