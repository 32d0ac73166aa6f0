"""/memory pause and resume. What is said meanwhile serves the running conversation alone and is deleted on resume, or after a day;
the database does that when the flag changes."""

from adapters.base import Answer
from bot.commands.changing import changed, lock
from bot.commands.context import Asking, CommandRefused, ask
from memory import log
from memory.db import value


async def pause(asking: Asking) -> Answer:
    """Keep nothing new until /memory resume. A stranger who asks gets an agent, as the wish could not be kept otherwise."""
    asking.allowed("pause")
    if asking.agent is None:
        asking = await met(asking)
    if not await _set(asking, paused=True, action="/memory pause"):
        raise CommandRefused("pausing.already")
    return Answer(asking.say("pausing.paused"), (asking.pause_or_resume(paused=True),))


async def resume(asking: Asking) -> Answer:
    """Remember again."""
    asking.allowed("pause")
    if not await _set(asking, paused=False, action="/memory resume"):
        raise CommandRefused("pausing.not_paused")
    return Answer(asking.say("pausing.resumed"))


async def _set(asking: Asking, *, paused: bool, action: str) -> bool:
    agent, place = asking.known()
    assert place is not None
    async with asking.parts.db.agent(agent, place) as connection:
        await lock(connection)
        if await value(connection, "SELECT paused FROM agents") == paused:
            return False
        if await value(connection, "SELECT held FROM agents"):
            raise CommandRefused("pausing.held")
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
