"""The pool and its connections after something went wrong."""

from __future__ import annotations

import psycopg
import pytest

from memory.db import Database
from tests.conftest import Urls

OFTEN = 5
"""How often psycopg sends a statement as it is, before it has it prepared."""


async def test_a_statement_that_failed_when_it_was_to_be_prepared_works_afterwards(urls: Urls) -> None:
    """The disk was full at that moment; replies stayed marked as being sent for a minute, as their end could not be written down."""
    statement = "SELECT number FROM public.numbers WHERE number = %s"
    with psycopg.connect(urls.owner, autocommit=True) as owner:
        owner.execute("CREATE TABLE public.numbers AS SELECT 7 AS number")
        owner.execute("GRANT SELECT ON public.numbers TO keepsake_bot")
        async with Database(urls.bot, size=1) as db:
            with pytest.raises(psycopg.errors.DivisionByZero):  # psycopg looks at the first ROLLBACK of a connection alone
                await db.as_agent(1, None, "SELECT 1 / 0")
            for _ in range(OFTEN):
                assert await db.as_agent(1, None, statement, (7,)) == [{"number": 7}]
            owner.execute("ALTER TABLE public.numbers RENAME TO away")
            with pytest.raises(psycopg.errors.UndefinedTable):
                await db.as_agent(1, None, statement, (7,))
            owner.execute("ALTER TABLE public.away RENAME TO numbers")
            assert await db.as_agent(1, None, statement, (7,)) == [{"number": 7}]
