"""Commands answer in the language of who asks: as their platform tells with the command, or as it told before."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from adapters.base import PlaceKind
from adapters.catalogue import LINES, say
from bot.commands import COMMANDS
from memory.log import Actor
from memory.working_context import SECTIONS
from tests.bot.commands.conftest import Opener
from tests.servers.model import call, reply

KEEP = call("working_context_append", section="profile", content="Has a cat called Miso.")


async def test_an_answer_is_in_the_askers_language_with_its_buttons(desk: Opener) -> None:
    async with desk(reply("Noted.", KEEP)) as one:
        await one.talk.hear("I have a cat called Miso")
        german = replace(one.talk, person=replace(one.talk.person, locale="de-AT"))
        shown = await one.press("/memory view", german)
        assert "Arbeitskontext (immer im Blick)\n  Profil\n" in shown.text
        assert "Has a cat called Miso." in shown.text, "what is remembered stays as it was said"
        assert [button.label for button in shown.buttons] == ["Korrigieren", "Vergessen", "Anhalten"]
        assert await one.type("/memory view w9", german) == say("view.not_there", "de", thing="w9")
        assert await one.type("/nonsense", german) == say("command.unknown", "de", word="/nonsense")
        assert "Deine letzte" not in await one.type("/help", german)
        assert "Dein Gedächtnis\n" in await one.type("/help", german)


async def test_the_language_is_kept_for_when_the_platform_does_not_tell_it(desk: Opener) -> None:
    """Discord tells a locale with slash commands alone; what is written, and what comes by itself, is answered by it, too."""
    async with desk(reply("Noted.")) as one:
        await one.talk.hear("Hello")
        assert "Working context" in await one.type("/memory view")
        french = replace(one.talk, person=replace(one.talk.person, locale="fr"))
        assert "Ruhezeit" not in await one.type("/settings", french)
        assert "Contexte de travail" in await one.type("/memory view")
        assert await one.talk.rows("SELECT locale FROM agents") == [{"locale": "fr"}]


async def test_who_is_unknown_is_answered_in_their_language(desk: Opener) -> None:
    async with desk() as one:
        italian = replace(one.talk, person=replace(one.talk.person, locale="it"))
        assert await one.type("/memory changes", italian) == say("command.nobody", "it")
        assert await one.type("/admin usage", italian) == say("access.admins_only", "it")


def test_every_name_that_is_put_together_has_its_line() -> None:
    names = {command.line for command in COMMANDS} | {f"section.{section}" for section in SECTIONS}
    names |= {f"who.{actor}" for actor in get_args(Actor)} | {f"whoami.here_{kind}" for kind in get_args(PlaceKind)}
    names |= {f"every.{each}" for each in ("daily", "weekly", "monthly", "yearly")} | {
        f"turn.{why}" for why in ("away", "limited", "refused")
    }
    names |= {f"turn.without_{part}" for part in ("entry", "summary", "result", "message")} | {"question.memory", "question.zone"}
    assert names - set(LINES["en"]) == set()
