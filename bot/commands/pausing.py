"""/memory pause and resume. What is said meanwhile serves the running conversation alone and is deleted on resume, or after a day;
the database does that when the flag changes."""

from adapters.base import Answer, Button
from bot.commands.changing import changed, lock
from bot.commands.context import Asking, CommandRefused, ask
from memory import log
from memory.db import value

PAUSED = (
    "Paused. I still answer, but I keep nothing new: what you write now serves this conversation only and is deleted when you resume, or "
    "after a day. I will not write first. What I remember already stays; /memory view shows it."
)
RESUMED = "I remember again from now on. What was said during the pause is deleted."
HELD = (
    "An operator has paused my memory of you; only they can end that. Your rights to see, export and erase it stay as they are."
)


async def pause(asking: Asking) -> Answer:
    """Keep nothing new until /memory resume. A stranger who asks gets an agent, as the wish could not be kept otherwise."""
    asking.allowed("pause")
    if asking.agent is None:
        asking = await met(asking)
    if not await _set(asking, paused=True, action="/memory pause"):
        raise CommandRefused("I am paused already. /memory resume ends it.")
    return Answer(PAUSED, (Button("Resume", "/memory resume", "good"),))


async def resume(asking: Asking) -> Answer:
    """Remember again."""
    asking.allowed("pause")
    if not await _set(asking, paused=False, action="/memory resume"):
        raise CommandRefused("I am not paused.")
    return Answer(RESUMED)


async def _set(asking: Asking, *, paused: bool, action: str) -> bool:
    agent, place = asking.known()
    assert place is not None
    async with asking.parts.db.agent(agent, place) as connection:
        await lock(connection)
        if await value(connection, "SELECT paused FROM agents") == paused:
            return False
        if await value(connection, "SELECT held FROM agents"):
            raise CommandRefused(HELD)
        await connection.execute("UPDATE agents SET paused = %s", (paused,))
        await log.record(
            connection,
            agent=agent,
            place=place,
            at=asking.parts.now(),
            actor="person",
            action=action,
            target="everything",
            target_id=None,
        )
        await changed(connection)
        await asking.parts.cache.forget_quietly(agent)
    return True


async def met(asking: Asking) -> Asking:
    """The same asking once the person has an agent, a place and a conversation."""
    person, where, parts = asking.person, asking.where, asking.parts
    async with parts.db.bare() as connection:
        agent = await value(
            connection,
            "SELECT agent_of(%s, %s, %s, %s, %s, %s)",
            (person.platform, person.realm, person.user_id, person.name, person.locale, person.timezone),
        )
    known = await ask(parts, person, where, asking.argument)
    async with parts.db.bare() as connection:
        await connection.execute("SELECT conversation_of(%s, %s)", (agent, known.place))
    return known
