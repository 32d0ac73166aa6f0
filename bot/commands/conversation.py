"""/stop, /retry and /fresh: the conversation of this place."""

from uuid import uuid4

from adapters.base import Incoming
from bot.commands.context import Asking
from memory import queue_manager
from memory.db import value


async def stop(asking: Asking) -> str:
    """Cancel what waits here and ask the running turn to end."""
    asking.allowed("stop")
    if asking.agent is None:
        return asking.say("conversation.idle")
    async with asking.parts.db.bare() as connection:
        row = await (
            await connection.execute("SELECT * FROM cancel_work(%s, %s, %s)", (asking.agent, asking.place, asking.parts.now()))
        ).fetchone()
    assert row is not None
    if row["running"]:
        return asking.say("conversation.stopped")
    waiting = row["cancelled"]
    return asking.say("conversation.taken_back", n=waiting) if waiting else asking.say("conversation.idle")


async def retry(asking: Asking) -> str:
    """Have the last message answered again: an event of its own in the inbox."""
    asking.allowed("retry")
    agent, place = asking.known()
    async with asking.parts.db.agent(agent, place) as connection:
        said = await value(
            connection, "SELECT true FROM messages WHERE place_id = %s AND kind = 'message' AND role = 'user' LIMIT 1", (place,)
        )
    if not said:
        return asking.say("conversation.no_retry")
    event = Incoming("retry", asking.person, asking.where, key=f"retry:{uuid4().hex}", at=asking.parts.now())
    await asking.parts.accept(event)
    return ""


async def fresh(asking: Asking) -> str:
    """An empty queue and no summary; recall storage keeps everything."""
    asking.allowed("fresh")
    agent, place = asking.known()
    assert place is not None
    async with asking.parts.db.agent(agent, place) as connection:
        conversation = await value(connection, "SELECT id FROM conversations WHERE place_id = %s", (place,))
        if conversation is None:
            return asking.say("conversation.only_begun")
        await queue_manager.fresh(connection, conversation, agent=agent, place=place, at=asking.parts.now())
    return asking.say("conversation.fresh")
