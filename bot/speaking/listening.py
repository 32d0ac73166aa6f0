"""What the bot itself does with what a person writes, whatever the model makes of it: care, and the questions that need their own yes.

judge   does somebody speak of an emergency? by words, and where those leave it open by the filter model
first   in the turn's first step: the emergency lines, the pause of openers, a plain yes or no to the question
asked   in its last step: what the turn needs a yes to; else the question for leave, once, after the first answers of a private conversation
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.catalogue import say
from bot.config.persona import Emergency
from bot.engine.events import Claim
from bot.engine.turns import Step, record_usage
from bot.keeping import consent
from bot.model.errors import ModelError
from bot.model.processor import Processor
from bot.model.replies import Reply
from bot.speaking import appointments
from bot.words.answers import yes_or_no
from bot.words.care import Kind, recognise, speaks_of
from memory import log as memory_log
from memory import messages
from memory.agent_state import AgentState
from memory.db import Connection
from memory.messages import Asks, Draft
from memory.spending import OverBudget, Usage

log = logging.getLogger(__name__)

ASK, DECLINED, CARE = -4, -9, -10
"""Steps of lines in the outbox that no turn reaches; each line of care has one of its own, downwards."""
_OF: Mapping[Kind, str] = {
    "harm": "of themselves now, of wanting to die, of suicide or of harming themselves? Figures of speech, stories and other people do not count.",
    "medical": "of a medical emergency now, their own or that of somebody near them? The past, figures of speech and stories do not count.",
    "violence": "of violence that somebody is about to do or doing now? Figures of speech, games and stories do not count.",
    "abuse": "of being beaten, raped or mistreated, they themselves or somebody near them? Games, figures of speech and stories do not count.",
}
VOICE = "You read one message of a person. Do they seem to speak, seriously, {of} Answer with one word: yes or no."
VOICE_TOKENS = 200
"""Room for the one word, with what models that reason need before it."""
_SEEMS: Mapping[str, str] = {
    "harm": "of harming themselves",
    "medical": "of a medical emergency",
    "violence": "of violence against somebody",
    "abuse": "of being mistreated",
    "other": "of something serious",
}
GIVEN = (
    "The emergency lines above were sent to the person at once, because they seem to speak {of}. Do not repeat them. Answer "
    "the person warmly and plainly, take them seriously, stay with them, and do not lecture."
)
SAID_YES = "The person said yes: you may write to them first now and then. Thank them in a few words."
SAID_NO = "The person said no: you will not write to them first. They are told how to change that; do not ask again."
NO_ZONE = (
    " Their time zone is unknown, and until it is known you cannot write first: ask in which city they live or how late it is there, propose the "
    "zone, and call set_time_zone."
)


@dataclass(frozen=True, slots=True)
class Listened:
    """What the words of a turn come to. `due`: the numbers of the lines whose moment it is; `crisis`: openers are to pause, lines or not.

    `spent`: what the second voice cost, by model.
    """

    crisis: bool = False
    due: tuple[int, ...] = ()
    spent: tuple[tuple[str, Usage], ...] = ()


@dataclass(frozen=True, slots=True)
class Listener:
    """What the operator chose. `question` makes the question for leave, by a locale; None: nobody is asked.

    `repeat`: after how long the same person gets the same line again.

    `name`: what the bot is called, as the author of its lines.
    """

    lines: tuple[Emergency, ...] = ()
    repeat: timedelta = timedelta(hours=1)
    question: Callable[[str], str] | None = None
    ask_after: int = 2
    voice: Processor | None = None
    count_tokens: Callable[[str], int] = len
    count: Callable[[str], None] = lambda _: None
    name: str = ""

    async def judge(self, claim: Claim) -> Listened:
        """Whether the person speaks of an emergency. The model may add care, never take it away; without it words decide."""
        if claim.origin != "person":
            return Listened()
        texts = claim.said
        found = {kind: [recognise(text, kind) for text in texts] for kind in _OF}
        plain = {kind for kind, findings in found.items() if "plain" in findings}
        spent: list[tuple[str, Usage]] = []
        for kind, findings in found.items():
            if kind in plain or "perhaps" not in findings or not self._matters(kind):
                continue
            meant = [text for text, finding in zip(texts, findings, strict=True) if finding]
            if (answer := await self._second_voice(claim, kind, "\n".join(meant))) is not None:
                spent.append((answer.model, answer.usage))
                if yes_or_no(answer.text or "") is True:
                    plain.add(kind)
        due = self._due(texts, plain)
        return Listened(bool(plain or due), due, tuple(spent))

    def _matters(self, kind: Kind) -> bool:
        """Whether something follows from an emergency of this kind: a line, or (self-harm) at least that openers pause."""
        return kind == "harm" or any(line.kind == kind for line in self.lines)

    def _due(self, texts: Sequence[str], kinds: Collection[str]) -> tuple[int, ...]:
        return tuple(
            number
            for number, line in enumerate(self.lines)
            if line.kind in kinds or any(speaks_of(text, line.words) for text in texts)
        )

    async def _second_voice(self, claim: Claim, kind: Kind, text: str) -> Reply | None:
        if self.voice is None:
            return None
        asked = [{"role": "system", "content": VOICE.format(of=_OF[kind])}, {"role": "user", "content": text[:4000]}]
        counted = sum(self.count_tokens(message["content"]) for message in asked)
        try:
            return await self.voice.think(
                claim.agent, "filter", asked, tool_choice="none", counted=counted, max_tokens=VOICE_TOKENS
            )
        except (ModelError, OverBudget) as error:
            log.warning("the second voice did not answer: %s", type(error).__name__)
            return None

    async def first(self, step: Step, state: AgentState, heard: Listened) -> list[Draft]:
        """Act on it in the turn's first step, the one that appends its events. Returns what else comes into the conversation."""
        claim = step.claim
        if claim.origin != "person" or claim.step:
            return []
        for model, used in heard.spent:
            record_usage(step, "filter", model, used)
        if heard.crisis:
            return await self._care(step, claim, heard)
        # Where nobody is asked nothing is looked up: a round trip of every turn.
        if self.question and state.place.kind == "direct" and (await self._row(step, claim)).get("openers") == "asked":
            return await self._answer(step, claim, state)
        return []

    async def _row(self, step: Step, claim: Claim) -> dict[str, Any]:
        cursor = await step.connection.execute("SELECT * FROM speaking WHERE agent_id = %s", (claim.agent,))
        return await cursor.fetchone() or {}

    async def _care(self, step: Step, claim: Claim, heard: Listened) -> list[Draft]:
        said_at = max(event.created_at for event in claim.events)
        due = heard.due if claim.addressed else ()
        given = await self._noted(step.connection, claim.agent, due, said_at, step.now)
        for number in given:
            await step.say(CARE - number, self._say(number))
        return self._given(given)

    async def _noted(
        self, connection: Connection, agent: int, due: Collection[int], said_at: datetime, now: datetime
    ) -> tuple[int, ...]:
        """Note a crisis, which makes openers pause; returns the lines that are to be given now: none that was given a short while ago."""
        cursor = await connection.execute(
            "SELECT DISTINCT step FROM outbox WHERE agent_id = %s AND step <= %s AND created_at > %s",
            (agent, CARE, now - self.repeat),
        )
        lately = {CARE - row["step"] for row in await cursor.fetchall()}
        give = tuple(number for number in due if number not in lately)
        await connection.execute(
            """INSERT INTO speaking (agent_id, crisis_at, care_at) VALUES (%s, %s, %s) ON CONFLICT (agent_id) DO UPDATE
               SET crisis_at = greatest(speaking.crisis_at, excluded.crisis_at), care_at = coalesce(excluded.care_at, speaking.care_at)""",
            (agent, said_at, now if give else None),
        )
        self.count("care_given" if give else "care_noted")
        return give

    def _say(self, number: int) -> str:
        return self.lines[number].say.strip()

    def _given(self, numbers: Iterable[int]) -> list[Draft]:
        """What the model is shown of the lines that were given."""
        given = [self.lines[number] for number in numbers]
        if not given:
            return []
        of = " and ".join(dict.fromkeys(_SEEMS[line.kind] for line in given))
        text = "\n\n".join(line.say.strip() for line in given)
        return [Draft("assistant", "message", text, author_name=self.name), Draft("user", "alert", GIVEN.format(of=of))]

    async def edited(self, connection: Connection, message: int, before: str, text: str, at: datetime) -> None:
        """A message whose turn has begun or is over says something else now: the lines where it speaks of a crisis only since the edit.

        Under the turn of the message, so that they are given once for it. What waits for its turn is judged there.
        """
        await appointments.follow_edit(connection, message, before, text, at)
        kinds = {kind for kind in _OF if recognise(text, kind) == "plain" and recognise(before, kind) != "plain"}
        before_too = self._due([before], ())
        due = [number for number in self._due([text], kinds) if self.lines[number].kind in kinds or number not in before_too]
        if not kinds and not due:
            return
        cursor = await connection.execute(
            """SELECT m.agent_id, m.place_id, m.conversation_id, m.turn_id, m.visibility, m.passing, p.platform, p.external_id,
                 coalesce((e.payload->>'addressed')::boolean, p.kind = 'direct') AS addressed
               FROM messages m JOIN places p ON p.id = m.place_id LEFT JOIN events e ON e.id = m.event_id
               WHERE m.id = %s AND m.role = 'user' AND m.kind = 'message'""",
            (message,),
        )
        row = await cursor.fetchone()
        if row is None:
            return
        given = await self._noted(connection, row["agent_id"], due if row["addressed"] else (), at, at)
        if not given:
            return
        for number in given:
            await connection.execute(
                """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
                   VALUES (%s, %s, %s, %s, %s, %s, 0, %s, %s) ON CONFLICT (turn_id, step, part) DO NOTHING""",
                (
                    row["agent_id"],
                    row["place_id"],
                    row["platform"],
                    row["external_id"],
                    row["turn_id"],
                    CARE - number,
                    self._say(number),
                    at,
                ),
            )
        await messages.append(
            connection,
            row["conversation_id"],
            self._given(given),
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
        if not answered.yes:
            await step.say(DECLINED, say("leave.declined", state.locale))
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
            asks, text = "leave", await self._question(step, state.locale)
        if not text:
            return []
        await step.say(ASK, text)
        self.count(f"{asks}_asked")
        return [Draft("assistant", "message", text, asks=asks)]

    async def _wanted(self, step: Step, state: AgentState) -> tuple[Asks, str]:
        """What this turn keeps until a yes: something sensitive before a time zone, as a yes is for one question alone."""
        cursor = await step.connection.execute(
            # With its tags: a yes is to all that is stored.
            """SELECT content || CASE WHEN tags = '{}' THEN '' ELSE ' (' || array_to_string(tags, ', ') || ')' END AS content
               FROM memory_requests WHERE turn_id = %s ORDER BY id""",
            (step.claim.turn,),
        )
        if contents := [row["content"] for row in await cursor.fetchall()]:
            return "memory", consent.question("memory", contents, state.locale)
        if proposed := await appointments.proposal(step.connection, step.claim.turn, state, step.now):
            return "timer", proposed
        row = await self._row(step, step.claim)
        zone = row.get("zone_guess") if row.get("guess_turn") == step.claim.turn else None
        return "zone", consent.question("zone", [zone], state.locale) if zone else ""

    async def _question(self, step: Step, locale: str) -> str:
        """The question for leave; to who gave it under stricter rules, with why it comes again."""
        assert self.question is not None
        row, question = await self._row(step, step.claim), self.question(locale)
        return f"{say('leave.again', locale)} {question}" if row.get("promised") else question

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
