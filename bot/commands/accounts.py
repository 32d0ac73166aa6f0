"""Which of a person's linked accounts something came from: their own commands show each account's memory under a heading that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.commands.context import Asking
from memory.db import Connection
from memory.search import Page

IN_ACCOUNT = "(%(platform)s::text IS NULL OR (p.platform = %(platform)s AND p.realm = %(realm)s))"
"""For a statement whose places are called `p`."""


@dataclass(frozen=True, slots=True)
class Account:
    """A platform and the realm in it; both None: whatever the account."""

    platform: str | None = None
    realm: str | None = None

    def named(self) -> Mapping[str, str | None]:
        """For `IN_ACCOUNT`."""
        return {"platform": self.platform, "realm": self.realm}


async def parts(connection: Connection, asking: Asking, *, everything: bool) -> list[tuple[list[str], Account]]:
    """The accounts to be shown apart, each with the lines above it: the one that asks first. No heading where there is only one."""
    cursor = await connection.execute(
        "SELECT platform, realm, min(user_id) AS user_id, min(display_name) AS name FROM identities GROUP BY 1, 2 ORDER BY 1, 2"
    )
    rows = await cursor.fetchall()
    if not everything or len(rows) < 2:
        return [([], Account())]
    rows.sort(key=lambda row: (row["platform"], row["realm"]) != (asking.person.platform, asking.person.realm))
    return [
        (
            [
                asking.say(
                    "accounts.linked" if number else "accounts.this",
                    account=f"{row['platform']}:{row['realm']}:{row['user_id']}",
                    name=row["name"],
                )
            ],
            Account(row["platform"], row["realm"]),
        )
        for number, row in enumerate(rows)
    ]


async def of(
    connection: Connection, table: Literal["messages", "passages", "memory_log"], ids: Sequence[int], account: Account
) -> set[int]:
    """Those of some rows that came from an account."""
    cursor = await connection.execute(
        f"SELECT x.id FROM {table} x JOIN places p ON p.id = x.place_id WHERE x.id = ANY(%(ids)s) AND {IN_ACCOUNT}",  # noqa: S608
        {**account.named(), "ids": list(ids)},
    )
    return {row["id"] for row in await cursor.fetchall()}


async def only(connection: Connection, table: Literal["messages", "passages"], found: Page, account: Account) -> Page:
    """A page of results with what came from an account alone; its totals stay those of all."""
    here = await of(connection, table, [hit.id for hit in found.hits], account)
    return replace(found, hits=tuple(hit for hit in found.hits if hit.id in here))
