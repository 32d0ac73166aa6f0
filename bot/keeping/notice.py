"""The notice of the first contact: once a person, beside the bot's first reply to them, in their language where it is known.

It is an outbox row of the step that holds the reply, so a crash loses neither or both, and the agent's row says that it went out. No model
is asked. At the terminal nobody gets it: who runs the bot there has its papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.engine.turns import Step
from memory.agent_state import AgentState
from memory.places import Place

STEP = -6
"""The notice's place in the outbox among the lines that no turn's step reaches."""
SILENT = frozenset({"console"})
FALLBACK = "en"

_GIVE = """WITH first AS (UPDATE agents SET noticed_at = %s WHERE id = %s AND noticed_at IS NULL RETURNING id, noticed_at)
  INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
    SELECT id, %s, %s, %s, %s, %s, 0, %s, noticed_at FROM first"""


@dataclass(frozen=True, slots=True)
class Notice:
    """The texts by language, and other ones by workspace. Empty: nobody is told anything."""

    texts: Mapping[str, str] = field(default_factory=dict)
    workspaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def text(self, place: Place, locale: str) -> str:
        """What somebody is told at a place; empty: nothing. `locale` is as the platform writes it: `de`, `pt-BR`, `en_US`."""
        if place.platform in SILENT:
            return ""
        texts = self.workspaces.get(place.workspace, self.texts) if place.workspace else self.texts
        whole = locale.replace("_", "-").casefold()
        known = {name.replace("_", "-").casefold(): text for name, text in texts.items()}
        return next((known[name] for name in (whole, whole.split("-")[0], FALLBACK) if name in known), "").strip()

    def give(self, step: Step, state: AgentState) -> AgentState:
        """Put it beside the reply of a step, if this person never got one."""
        text = "" if state.noticed else self.text(state.place, state.locale)
        if not text:
            return state
        claim = step.claim
        step.later(_GIVE, (step.now, claim.agent, claim.place, claim.platform, claim.channel, claim.turn, STEP, text))
        step.parts += 1
        return replace(state, noticed=True)
