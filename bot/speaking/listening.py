"""What the bot itself does with what a person writes, whatever the model makes of it: care, and the questions that need their own yes.

judge   does somebody speak of harming themselves? by words, and where those leave it open by the filter model
first   in the turn's first step: the emergency lines, the pause of openers, a plain yes or no to the question
asked   in its last step: what the turn needs a yes to; else the question for leave, once, after the first answers of a private conversation
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bot.engine.events import Claim
from bot.engine.turns import Step, record_usage
from bot.keeping import consent
from bot.model.errors import ModelError
from bot.model.processor import Processor
from bot.speaking import appointments
from bot.words.answers import yes_or_no
from bot.words.care import recognise
from memory import log as memory_log
from memory import messages
from memory.agent_state import AgentState
from memory.db import Connection
from memory.messages import Asks, Draft
from memory.spending import OverBudget, Usage

log = logging.getLogger(__name__)

ASK, CARE = -4, -10
"""Steps of lines in the outbox that no turn reaches; each line of care has one of its own, downwards."""
VOICE = (
    "You read one message of a person. Do they seem to speak, seriously and of themselves now, of wanting to die, of suicide or of "
    "harming themselves? Figures of speech, stories and other people do not count. Answer with one word: yes or no."
)
VOICE_TOKENS = 200
"""Room for the one word, with what models that reason need before it."""
GIVEN = (
    "The emergency lines above were sent to the person at once, because they seem to speak of harming themselves. Do not repeat them. Answer "
    "the person warmly and plainly, take them seriously, stay with them, and do not lecture."
)
SAID_YES = "The person said yes: you may write to them first now and then. Thank them in a few words."
SAID_NO = "The person said no: you will not write to them first. Accept it in a few words, and do not ask again."
AGAIN = "My operator changed when I may write to you first, so your yes no longer counts, and I ask again."
NO_ZONE = (
    " Their time zone is unknown, and until it is known you cannot write first: ask in which city they live or how late it is there, propose the "
    "zone, and call set_time_zone."
)


@dataclass(frozen=True, slots=True)
class Listened:
    """What the words of a turn come to. `spent`: what the second voice cost, by model; None: it was not asked."""

    crisis: bool = False
    spent: tuple[str, Usage] | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """What the operator chose. `question` empty: nobody is asked. `repeat`: after how long the same person gets the lines again.

    `name`: what the bot is called, as the author of its lines.
    """

    lines: tuple[str, ...] = ()
    repeat: timedelta = timedelta(hours=1)
    question: str = ""
    ask_after: int = 2
    voice: Processor | None = None
    count_tokens: Callable[[str], int] = len
    count: Callable[[str], None] = lambda _: None
    name: str = ""

    async def judge(self, claim: Claim) -> Listened:
        """Whether the person speaks of harming themselves. The model may add care, never take it away; without it words decide."""
        if claim.origin != "person":
            return Listened()
        texts = [str(event.payload.get("text", "")) for event in claim.events if event.kind == "message"]
        found = [recognise(text) for text in texts]
        if "plain" in found:
            return Listened(crisis=True)
        if "perhaps" not in found or self.voice is None:
            return Listened()
        return await self._second_voice(claim, "\n".join(text for text, finding in zip(texts, found, strict=True) if finding))

    async def _second_voice(self, claim: Claim, text: str) -> Listened:
        assert self.voice is not None
        asked = [{"role": "system", "content": VOICE}, {"role": "user", "content": text[:4000]}]
        counted = sum(self.count_tokens(message["content"]) for message in asked)
        try:
            reply = await self.voice.think(
                claim.agent, "filter", asked, tool_choice="none", counted=counted, max_tokens=VOICE_TOKENS
            )
        except (ModelError, OverBudget) as error:
            log.warning("the second voice did not answer: %s", type(error).__name__)
            return Listened()
        return Listened(yes_or_no(reply.text or "") is True, (reply.model, reply.usage))

    async def first(self, step: Step, state: AgentState, heard: Listened) -> list[Draft]:
        """Act on it in the turn's first step, the one that appends its events. Returns what else comes into the conversation."""
        claim = step.claim
        if claim.origin != "person" or claim.step:
            return []
        if heard.spent is not None:
            model, used = heard.spent
            record_usage(step, "filter", model, used)
        if heard.crisis:
            return await self._care(step, claim, await self._row(step, claim))
        # Where nobody is asked nothing is looked up: a round trip of every turn.
        if self.question and state.place.kind == "direct" and (await self._row(step, claim)).get("openers") == "asked":
            return await self._answer(step, claim, state)
        return []

    async def _row(self, step: Step, claim: Claim) -> dict[str, Any]:
        cursor = await step.connection.execute("SELECT * FROM speaking WHERE agent_id = %s", (claim.agent,))
        return await cursor.fetchone() or {}

    async def _care(self, step: Step, claim: Claim, row: dict[str, Any]) -> list[Draft]:
        said_at = max(event.created_at for event in claim.events)
        if not await self._noted(step.connection, claim.agent, row.get("care_at"), said_at, step.now, addressed=claim.addressed):
            return []
        for number, line in enumerate(self.lines):
            await step.say(CARE - number, line)
        return self._given()

    async def _noted(
        self, connection: Connection, agent: int, given_at: datetime | None, said_at: datetime, now: datetime, *, addressed: bool
    ) -> bool:
        """Note a crisis, which makes openers pause; returns whether the lines are to be given now."""
        give = addressed and bool(self.lines) and (given_at is None or now - given_at >= self.repeat)
        await connection.execute(
            """INSERT INTO speaking (agent_id, crisis_at, care_at) VALUES (%s, %s, %s) ON CONFLICT (agent_id) DO UPDATE
               SET crisis_at = greatest(speaking.crisis_at, excluded.crisis_at), care_at = coalesce(excluded.care_at, speaking.care_at)""",
            (agent, said_at, now if give else None),
        )
        self.count("care_given" if give else "care_noted")
        return give

    def _given(self) -> list[Draft]:
        return [Draft("assistant", "message", "\n\n".join(self.lines), author_name=self.name), Draft("user", "alert", GIVEN)]

    async def edited(self, connection: Connection, message: int, before: str, text: str, at: datetime) -> None:
        """A message whose turn has begun or is over says something else now: the lines where it speaks of a crisis only since the edit.

        Under the turn of the message, so that they are given once for it. What waits for its turn is judged there.
        """
        await appointments.follow_edit(connection, message, before, text, at)
        if recognise(text) != "plain" or recognise(before) == "plain":
            return
        cursor = await connection.execute(
            """SELECT m.agent_id, m.place_id, m.conversation_id, m.turn_id, m.visibility, m.passing, p.platform, p.external_id,
                 coalesce((e.payload->>'addressed')::boolean, p.kind = 'direct') AS addressed, s.care_at
               FROM messages m JOIN places p ON p.id = m.place_id LEFT JOIN events e ON e.id = m.event_id
                 LEFT JOIN speaking s ON s.agent_id = m.agent_id
               WHERE m.id = %s AND m.role = 'user' AND m.kind = 'message'""",
            (message,),
        )
        row = await cursor.fetchone()
        if row is None or not await self._noted(connection, row["agent_id"], row["care_at"], at, at, addressed=row["addressed"]):
            return
        for number, line in enumerate(self.lines):
            await connection.execute(
                """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
                   VALUES (%s, %s, %s, %s, %s, %s, 0, %s, %s) ON CONFLICT (turn_id, step, part) DO NOTHING""",
                (row["agent_id"], row["place_id"], row["platform"], row["external_id"], row["turn_id"], CARE - number, line, at),
            )
        await messages.append(
            connection,
            row["conversation_id"],
            self._given(),
            visibility=row["visibility"],
            at=at,
            turn=row["turn_id"],
            passing=row["passing"],
        )
        await connection.execute("SELECT pg_notify('keepsake_outbox', %s)", (row["platform"],))

    async def _answer(self, step: Step, claim: Claim, state: AgentState) -> list[Draft]:
        answered = await consent.answer(step.connection, claim, "leave")
        if answered is None:
            return []
        await set_leave(step, claim, answered.yes)
        zone = NO_ZONE if answered.yes and not state.zone else ""
        return [Draft("user", "alert", (SAID_YES if answered.yes else SAID_NO) + zone)]

    async def asked(self, step: Step, state: AgentState, wanted: Collection[Asks]) -> list[Draft]:
        """The one question of the bot's own that ends this turn, put into the outbox; none where there is nothing to ask.

        `wanted`: what the turn's calls need a yes to. A turn that went on after a crash looks for itself.
        """
        claim = step.claim
        if not claim.addressed:
            return []
        asks: Asks = "leave"
        text = ""
        if wanted or claim.resumed:
            asks, text = await self._wanted(step, state)
        if not text and await self._leave_is_due(step, state, at_once="leave" in wanted):
            asks, text = "leave", await self._question(step)
        if not text:
            return []
        await step.say(ASK, text)
        self.count(f"{asks}_asked")
        return [Draft("assistant", "message", text, asks=asks)]

    async def _wanted(self, step: Step, state: AgentState) -> tuple[Asks, str]:
        """What this turn keeps until a yes: something sensitive before a time zone, as a yes is for one question alone."""
        cursor = await step.connection.execute(
            "SELECT content FROM memory_requests WHERE turn_id = %s ORDER BY id", (step.claim.turn,)
        )
        if contents := [row["content"] for row in await cursor.fetchall()]:
            return "memory", consent.question("memory", contents, state.locale)
        if proposed := await appointments.proposal(step.connection, step.claim.turn, state, step.now):
            return "timer", proposed
        row = await self._row(step, step.claim)
        zone = row.get("zone_guess") if row.get("guess_turn") == step.claim.turn else None
        return "zone", consent.question("zone", [zone], state.locale) if zone else ""

    async def _question(self, step: Step) -> str:
        """The question for leave; to who gave it under stricter rules, with why it comes again."""
        row = await self._row(step, step.claim)
        return f"{AGAIN} {self.question}" if row.get("promised") else self.question

    async def _leave_is_due(self, step: Step, state: AgentState, *, at_once: bool) -> bool:
        """Whether this turn's end is the moment to ask for leave to write first; never twice, but where they speak of it (`at_once`)."""
        claim = step.claim
        if not self.question or state.place.kind != "direct":
            return False
        cursor = await step.connection.execute(
            """SELECT (SELECT openers FROM speaking WHERE agent_id = %(agent)s) AS openers,
                 (SELECT crisis_at FROM speaking WHERE agent_id = %(agent)s) AS crisis_at,
                 (SELECT count(*) FROM (SELECT 1 FROM messages WHERE conversation_id = %(conversation)s AND role = 'user' AND kind = 'message'
                    LIMIT %(enough)s) m) AS wrote""",
            {"agent": claim.agent, "conversation": claim.conversation, "enough": self.ask_after},
        )
        row = await cursor.fetchone()
        assert row is not None
        first = row["openers"] in (None, "unasked") and row["crisis_at"] is None and row["wrote"] >= self.ask_after
        if not first and not (at_once and row["openers"] not in ("yes", "no")):
            return False
        await step.connection.execute(
            "INSERT INTO speaking (agent_id, openers) VALUES (%s, 'asked') ON CONFLICT (agent_id) DO UPDATE SET openers = 'asked'",
            (claim.agent,),
        )
        return True


async def set_leave(step: Step, claim: Claim, leave: bool) -> None:
    """Note a person's own yes or no, and log it where they see it."""
    await step.connection.execute(
        """INSERT INTO speaking (agent_id, openers, decided_at) VALUES (%(agent)s, %(leave)s, %(now)s)
           ON CONFLICT (agent_id) DO UPDATE SET openers = excluded.openers, decided_at = excluded.decided_at""",
        {"agent": claim.agent, "leave": "yes" if leave else "no", "now": step.now},
    )
    await memory_log.record(
        step.connection,
        agent=claim.agent,
        place=claim.place,
        at=step.now,
        actor="person",
        action="leave to write first" if leave else "no leave to write first",
        target="everything",
        target_id=None,
        turn=claim.turn,
    )
