"""What stands of a person's words in other people's memory: /memory view quotes and /memory forget quotes, also for who never spoke to the bot.

In a channel the last messages around a question come along with it, so words stand there whose authors have no agent. They have the same
right to see and to erase them, and get no agent by asking.
"""

from __future__ import annotations

from adapters.base import Answer, Button, Person
from bot.commands.context import NOBODY, Asking, CommandRefused, Parts, counted
from bot.commands.paging import page_of
from memory import bystanders
from memory.people import find_agent
from memory.places import place_label
from memory.things import brief, when

SHORT = 300
"""Characters shown of one quote."""
STRANGER = "I have no memory of you of my own."
PRIVATELY = "Ask me in a direct message to read them."


async def view(asking: Asking, page: int) -> Answer:
    """The quotes, to the person themselves alone; elsewhere how many there are."""
    asking.allowed("view")
    authors = await _authors(asking)
    total = await bystanders.total(asking.parts.db, authors, asking.agent)
    if not total.any:
        return Answer(f"Nothing of {authors[0]} is kept." if asking.about_another else _nothing(asking))
    head = [*([STRANGER] if asking.agent is None and not asking.about_another else []), _said(asking, total)]
    erase = (Button("Erase them", "/memory forget quotes", "danger"),)
    if not asking.own_direct:
        return Answer(" ".join([*head, PRIVATELY]), erase)
    zone = await asking.zone()
    lines = [
        f"  {when(row.at, zone)}, {'brought along by somebody' if row.kind == 'direct' else place_label(row.kind, row.name)}: "
        f"{brief(row.content, SHORT)}"
        for row in await bystanders.quotes(asking.parts.db, authors, asking.agent)
    ]
    if asking.about_another:
        return page_of([*head, *lines], page, f"/admin memory view {asking.person.author_id}")
    return page_of([*head, *lines], page, "/memory view quotes", erase)


async def line(asking: Asking) -> list[str]:
    """One line for who looks at their memory; none where nobody quotes them."""
    total = await bystanders.total(asking.parts.db, await _authors(asking), asking.agent)
    return [f"{_said(asking, total)} /memory view quotes shows them, /memory forget quotes erases them."] if total.any else []


async def forget(asking: Asking, *, sure: bool) -> Answer:
    """Erase the quotes and what was noted of them, and look again; after a yes."""
    verdict = asking.allowed("forget")
    parts, authors = asking.parts, await _authors(asking)
    total = await bystanders.total(parts.db, authors, asking.agent)
    if not total.any:
        return Answer(_nothing(asking))
    if not sure:
        return Answer(
            f"{_said(asking, total)} This erases them there, with what was noted of them. It cannot be undone. To go ahead: "
            "/memory forget quotes yes",
            (Button("Erase them", "/memory forget quotes yes", "danger"),),
        )
    erased = await bystanders.erase(
        parts.db, parts.cache, authors, asking.agent, actor=verdict.role, key=parts.erasure_key, now=parts.now()
    )
    if erased.left.any:
        raise CommandRefused("The erasure is incomplete. Tell the operator, and ask again.")
    again = (
        ""
        if asking.agent is not None
        else " What is said in channels is not quoted for a week; blocking or pausing lasts longer."
    )
    return Answer(
        f"Erased: {counted(erased.removed, 'row')} in other people's memory. I looked again and found nothing left.{again}"
    )


def _nothing(asking: Asking) -> str:
    return NOBODY if asking.agent is None else "None of your words stand in other people's memory."


def _said(asking: Asking, total: bystanders.Total) -> str:
    whose = "their" if asking.about_another else "your"
    noted = f", and {counted(total.noted, 'note')} made of them" if total.noted else ""
    waiting = f", and {counted(total.waiting, 'quote')} in a message that waits" if total.waiting else ""
    return f"In other people's memory: {counted(total.quotes, 'quote')} of {whose} words{noted}{waiting}."


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
