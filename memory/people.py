"""People and their agents: who belongs to which."""

from memory.db import Database, value


async def find_agent(db: Database, platform: str, realm: str, user_id: str) -> int | None:
    """The agent of a person, without making one."""
    async with db.bare() as connection:
        found = await value(connection, "SELECT known_agent(%s, %s, %s)", (platform, realm, user_id))
        return None if found is None else int(found)
