"""What stands of a person's words in other people's memory: /memory view quotes and /memory forget quotes, also for who never spoke to the bot.

In a channel the last messages around a question come along with it, so words stand there whose authors have no agent. They have the same
right to see and to erase them, and get no agent by asking.
"""

from __future__ import annotations

from adapters.base import Answer, Button, Person
from bot.commands.context import NOBODY, Asking, CommandRefused, Parts
from bot.commands.paging import page_of
from memory import bystanders
from memory.people import find_agent
from memory.things import brief

SHORT = 300
"""Characters shown of one quote."""


async def view(asking: Asking, page: int) -> Answer:
    """The quotes, to the person themselves alone; elsewhere how many there are."""
    asking.allowed("view")
    authors = await _authors(asking)
    total = await bystanders.total(asking.parts.db, authors, asking.agent)
    if not total.any:
        return Answer(asking.say("erasing.nothing_of", name=authors[0]) if asking.about_another else _nothing(asking))
    head = [*([asking.say("quoted.stranger")] if asking.agent is None and not asking.about_another else []), _said(asking, total)]
    erase = (Button(asking.say("button.erase_them"), "/memory forget quotes", "danger"),)
    if not asking.own_direct:
        return Answer(" ".join([*head, asking.say("quoted.privately")]), erase)
    zone = await asking.zone()
    lines = [
        f"  {asking.when(row.at, zone)}, {asking.say('quoted.brought_along') if row.kind == 'direct' else asking.label(row.kind, row.name)}: "
        f"{brief(row.content, SHORT)}"
        for row in await bystanders.quotes(asking.parts.db, authors, asking.agent)
    ]
    if asking.about_another:
        return page_of(asking, [*head, *lines], page, f"/admin memory view {asking.person.author_id}")
    return page_of(asking, [*head, *lines], page, "/memory view quotes", erase)


async def line(asking: Asking) -> list[str]:
    """One line for who looks at their memory; none where nobody quotes them."""
    total = await bystanders.total(asking.parts.db, await _authors(asking), asking.agent)
    return [f"{_said(asking, total)} {asking.say('quoted.ways')}"] if total.any else []


async def forget(asking: Asking, *, sure: bool) -> Answer:
    """Erase the quotes and what was noted of them, and look again; after a yes."""
    verdict = asking.allowed("forget")
    parts, authors = asking.parts, await _authors(asking)
    total = await bystanders.total(parts.db, authors, asking.agent)
    if not total.any:
        return Answer(_nothing(asking))
    if not sure:
        return Answer(
            f"{_said(asking, total)} {asking.say('quoted.sure')}",
            (Button(asking.say("button.erase_them"), "/memory forget quotes yes", "danger"),),
        )
    erased = await bystanders.erase(
        parts.db, parts.cache, authors, asking.agent, actor=verdict.role, key=parts.erasure_key, now=parts.now()
    )
    if erased.left.any:
        raise CommandRefused("quoted.incomplete")
    said = asking.say("quoted.erased", rows=asking.counted("row", erased.removed))
    return Answer(said if asking.agent is not None else f"{said} {asking.say('quoted.for_a_week')}")


def _nothing(asking: Asking) -> str:
    return asking.say(NOBODY if asking.agent is None else "quoted.none")


def _said(asking: Asking, total: bystanders.Total) -> str:
    quotes = asking.counted("quote_of_theirs" if asking.about_another else "quote_of_yours", total.quotes)
    also = asking.counts({"note_of_them": total.noted, "waiting_quote": total.waiting})
    return asking.say("quoted.said", quotes=", ".join([quotes, *also]))


async def _authors(asking: Asking) -> list[str]:
    """The names that the person is quoted under: those of all their accounts."""
    if asking.agent is None:
        return [asking.person.author_id]
    return await bystanders.authors_of(asking.parts.db, asking.agent)


async def bystander(parts: Parts, name: str) -> Person | None:
    """Whom an operator means by `platform:realm:user`, where they have no agent and are quoted by others."""
    if name.count(":") < 2:
        return None
    platform, realm, user = name.split(":", 2)
    person = Person(platform, realm, user, user)
    if await find_agent(parts.db, platform, realm, user) is not None:
        return None
    return person if (await bystanders.total(parts.db, [person.author_id], None)).any else None
