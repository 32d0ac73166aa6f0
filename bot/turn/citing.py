"""What a reply cites is checked against what the agent was shown: a place in a document that it never fetched is taken out, and counted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from bot.documents.kinds import ENDINGS
from bot.functions.context import CallContext
from bot.words.citations import cited, without

log = logging.getLogger(__name__)


async def checked(call: CallContext, text: str, count: Callable[[str], None]) -> str:
    """A reply's text, and with it everything that `send_message` sent in this step, without citations of what was never fetched."""
    texts = [text, *call.said]
    if not any(cited(each, (), ENDINGS) for each in texts):
        return text
    names = [row["name"] for row in await call.rows("SELECT DISTINCT lower(name) AS name FROM documents")]
    found = set().union(*(cited(each, names, ENDINGS) for each in texts))
    shown = {
        (row["name"], row["page"])
        for row in await call.rows(
            """SELECT DISTINCT lower(d.name) AS name, p.page FROM fetched f JOIN passages p ON p.id = f.passage_id
                 JOIN documents d ON d.id = p.document_id WHERE lower(d.name) = ANY (%s)""",
            [name for name, _ in found],
        )
    }
    false = found - shown
    if false:
        count("citation_taken_out")
        log.warning("turn %d cites what it was never shown: %d taken out", call.claim.turn, len(false))
        call.said[:] = _cleaned(call.said, false, names)
        [text] = _cleaned([text], false, names)
    return text


def _cleaned(texts: Sequence[str], false: set[tuple[str, int]], names: Sequence[str]) -> list[str]:
    return [without(text, false, names, ENDINGS) for text in texts]
