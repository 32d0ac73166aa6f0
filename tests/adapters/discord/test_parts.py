"""The adapter's pure parts: markup, files, the guard, presences, nonces and refusals."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import discord
import pytest

from adapters.base import Answer, Button, Outgoing, TryLater, Undeliverable, Unreachable
from adapters.catalogue import say
from adapters.discord.buttons import Pressed, custom_id, pressed, question, shown, typed
from adapters.discord.commands import BARE, Slash, Translator, tree_of
from adapters.discord.connection import client_of, fatal, intents_of
from adapters.discord.outbound import meaning, nonce_of
from adapters.discord.presence import FLAP, SETTLING, Presences
from adapters.discord.settings import Settings
from adapters.discord.texts import Names, readable
from adapters.files import File, described, is_text, with_content
from adapters.guard import IN_WINDOW, SINCE_HUMAN, WINDOW, PairGuard
from adapters.images import image, wanted
from bot.commands import COMMANDS

NAMES = Names({1: "Ada", 2: "Ben"}.get, {3: "helpers"}.get, {4: "garden"}.get)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("<@9> hello", "hello"),
        ("<@!9>, hello", "hello"),
        ("<@9> <@9>: hello <@9>", "hello @somebody"),
        ("<@1> and <@!2> and <@5>", "@Ada and @Ben and @somebody"),
        ("<@&3> in <#4> or <#5>, <@&6>", "@helpers in #garden or #a channel, @a role"),
        ("<:rose:123456789012345678> <a:dance:1>", ":rose: :dance:"),
        ("<t:0:R> </memory view:42>", "1970-01-01 00:00 UTC /memory view"),
        ("<t:999999999999>", "<t:999999999999>"),
        ("a < b > c <@> <#x> <script>", "a < b > c <@> <#x> <script>"),
        ("<@9>", ""),
    ],
)
def test_markup_is_readable(text: str, seen: str) -> None:
    assert readable(text, NAMES, me=9) == seen


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("message.txt", None, True),
        ("message.txt", "text/plain; charset=utf-8", True),
        ("a.bin", "text/x-anything", True),
        ("data.json", "application/json", True),
        ("notes.MD", "application/octet-stream", True),
        ("cat.png", "image/png", False),
        ("page.html", "image/png", False),
        ("archive.zip", None, False),
        ("noending", None, False),
    ],
)
def test_text_files_are_told_by_type_or_ending(name: str, kind: str | None, text: bool) -> None:
    assert is_text(File(name, 1, "", kind)) is text


def test_a_file_is_cut_between_characters_and_says_so() -> None:
    content = "é" * 10
    cut = with_content(File("a.txt", 20, ""), content.encode()[:5])
    assert cut == "[file a.txt]\néé\n[truncated 5 of 20 bytes]\n[end of a.txt]"
    assert "truncated" not in with_content(File("a.txt", 20, ""), content.encode())
    assert described(File("x]\ny.png", 10_000_000, "", "image/png")) == "[image xy.png, image/png, 10 MB]"


def test_the_guard_stops_bots_without_a_person_and_by_the_clock() -> None:
    guard = PairGuard()
    assert [guard.bot("c", "b", 0.0) for _ in range(SINCE_HUMAN + 1)] == [True] * SINCE_HUMAN + [False]
    guard.person("c")
    assert [guard.bot("c", "b", 1.0) for _ in range(3)] == [True] * (IN_WINDOW - SINCE_HUMAN) + [False]
    guard.person("c")
    assert guard.bot("c", "another", 1.0)
    assert guard.bot("c", "b", WINDOW + 1.0)


def test_a_login_is_seen_once_however_many_guilds_and_flaps() -> None:
    seen = Presences()
    seen.connected(0.0)
    assert not seen.login(1, 7, "online", 1.0)  # unknown, just connected
    late = SETTLING + 1
    guilds = (7, 8, 9)

    def told(user: int, status: str, at: float) -> list[bool]:
        return [seen.login(user, guild, status, at) for guild in guilds]

    assert told(2, "online", late) == [True, False, False]
    assert not any(told(2, "idle", late + 1) + told(2, "offline", late + 2))
    assert not any(told(2, "online", late + 3))  # a flap
    assert not any(told(2, "offline", late + 4))
    assert told(2, "dnd", late + FLAP) == [True, False, False]
    assert not any(told(1, "offline", late))
    assert told(1, "online", late) == [True, False, False]


def test_who_was_online_when_a_guild_appeared_has_not_come() -> None:
    seen, late = Presences(), SETTLING + 1
    seen.connected(0.0)
    seen.guild(7, {1, 2})
    assert not seen.login(1, 7, "online", late), "another activity, nothing else"
    assert seen.login(3, 7, "online", late), "was offline, as Discord did not name them"
    # Another session: one of them left meanwhile and comes back at once, another came meanwhile.
    seen.connected(late)
    seen.guild(7, {2, 4})
    assert seen.login(1, 7, "online", late + 1)
    assert not seen.login(4, 7, "idle", late + SETTLING + 1)


def test_a_nonce_is_short_and_its_own() -> None:
    one = nonce_of(Outgoing(2**63 - 1, "1", "text"))
    assert len(one) <= 25
    assert one == nonce_of(Outgoing(2**63 - 1, "other", "text"))
    assert len({nonce_of(Outgoing(number, "1", text)) for number in (1, 2, 37) for text in ("a", "b", "\ud800")}) == 9


def refusal(status: int, code: int, **headers: str) -> discord.HTTPException:
    response: Any = SimpleNamespace(status=status, reason="", headers=headers)
    return discord.HTTPException(response, {"code": code, "message": "refused"})


@pytest.mark.parametrize(
    ("status", "code", "kind", "seconds"),
    [
        (403, 50007, Unreachable, None),
        (403, 50278, Unreachable, None),
        (403, 50001, Unreachable, None),
        (404, 10003, Undeliverable, None),
        (400, 50083, Undeliverable, None),
        (400, 160005, Undeliverable, None),
        (400, 50035, Undeliverable, None),
        (400, 200000, Undeliverable, None),
        (400, 40003, TryLater, 60.0),
        (429, 20016, TryLater, 7.0),
        (429, 0, TryLater, 7.0),
        (401, 0, TryLater, 60.0),
        (503, 0, None, None),
    ],
)
def test_what_a_refusal_means(status: int, code: int, kind: type[Exception] | None, seconds: float | None) -> None:
    headers = {"Retry-After": "7"} if status == 429 else {}
    meant = meaning(refusal(status, code, **headers))
    assert (type(meant) if meant else None) is kind
    if isinstance(meant, TryLater):
        assert meant.seconds == seconds


def test_only_the_intents_that_are_asked_for() -> None:
    least = intents_of(Settings("t"))
    assert (least.guilds, least.guild_messages, least.dm_messages) == (True, True, True)
    unwanted = (least.message_content, least.members, least.presences, least.guild_typing, least.voice_states)
    assert not any(unwanted)
    most = intents_of(Settings("t", message_content=True, join_channels=frozenset("1"), login_events=True))
    assert most.message_content
    assert most.members
    assert most.presences


def test_the_token_is_in_no_representation() -> None:
    assert "secret" not in repr(Settings("secret"))


def test_what_is_fatal() -> None:
    settings = Settings("t", token_env="MY_TOKEN", message_content=True)
    assert "MY_TOKEN" in str(fatal(discord.LoginFailure(), settings))
    assert "discord.message_content" in str(fatal(discord.PrivilegedIntentsRequired(None), settings))
    closed: Any = SimpleNamespace(close_code=4004)
    assert "MY_TOKEN" in str(fatal(discord.ConnectionClosed(closed, shard_id=None), settings))
    assert "discord.sharded" in str(fatal(discord.ConnectionClosed(closed, shard_id=None, code=4011), settings))
    for error in (AttributeError(), OSError(), refusal(500, 0), discord.ConnectionClosed(closed, shard_id=None, code=4009)):
        assert fatal(error, settings) is None


async def test_every_command_of_the_bot_has_its_slash_command() -> None:
    async def answer(interaction: object, line: str) -> None: ...

    slashes = [
        Slash(one.name.removeprefix("/"), one.does(""), one.example if one.example != one.name else "") for one in COMMANDS
    ]
    tree = tree_of(client_of(Settings("t")), slashes, answer)
    known = {
        f"/{command.qualified_name}" for command in tree.walk_commands() if not isinstance(command, discord.app_commands.Group)
    }
    assert {name.removesuffix(f" {BARE}") for name in known} == {one.name for one in COMMANDS}
    [memory] = [one.to_dict(tree) for one in tree.get_commands() if one.name == "memory"]
    [search] = [one for one in memory["options"] if one["name"] == "search"]
    assert [option["name"] for option in search["options"]] == ["text"]


async def test_what_a_command_does_is_told_in_the_readers_language() -> None:
    async def answer(interaction: object, line: str) -> None: ...

    slashes = [Slash(one.name.removeprefix("/"), one.does(""), line=one.line) for one in COMMANDS]
    tree = tree_of(client_of(Settings("t")), slashes, answer)
    [memory] = [await one.get_translated_payload(tree, Translator()) for one in tree.get_commands() if one.name == "memory"]
    [search] = [one for one in memory["options"] if one["name"] == "search"]
    told = search["description_localizations"]
    assert set(told) == {"en-US", "en-GB", "de", "fr", "es-ES", "es-419", "pt-BR", "it"}
    assert told["de"] == say("does.memory_search", "de") != search["description"]


async def test_groups_that_are_commands_too_and_those_for_admins() -> None:
    async def answer(interaction: object, line: str) -> None: ...

    names = ("talk", "talk loud", "admin memory", "admin memory view", "admin who")
    slashes = [Slash(name, "does", "x", restricted=name.startswith("admin")) for name in names]
    tree = tree_of(client_of(Settings("t")), slashes, answer)
    known = {one.qualified_name for one in tree.walk_commands() if not isinstance(one, discord.app_commands.Group)}
    assert known == {"talk show", "talk loud", "admin memory show", "admin memory view", "admin who"}
    sent = {one.name: one.to_dict(tree) for one in tree.get_commands()}
    assert sent["admin"]["default_member_permissions"] == discord.Permissions(manage_guild=True).value
    assert sent["talk"]["default_member_permissions"] is None


@pytest.mark.parametrize(
    ("button", "name"),
    [
        (Button("Forget", "/memory forget m12", "danger"), "ks|80351110224678912||/memory forget m12"),
        (Button("Correct", "/memory correct w3", ask="new|text"), "ks|80351110224678912|new/text|/memory correct w3"),
        (Button("Long", "/x " + "y" * 80), None),
        (Button("Just fits", "/" + "y" * 75), "ks|80351110224678912||/" + "y" * 75),
        (Button("No room to ask", "/" + "y" * 77, ask="what?"), None),
    ],
)
def test_what_a_button_does_stands_in_its_custom_id(button: Button, name: str | None) -> None:
    made = custom_id(80351110224678912, button)
    assert made == name
    if made is not None:
        assert len(made) <= 100
        assert pressed(made) == Pressed(80351110224678912, button.ask.replace("|", "/"), button.line)


def test_a_question_is_cut_where_it_must_be() -> None:
    made = custom_id(1, Button("x", "/" + "y" * 60, ask="z" * 200))
    assert made is not None
    assert len(made) == 100
    assert pressed(made) == Pressed(1, "z" * 33, "/" + "y" * 60)


@pytest.mark.parametrize("text", ["", "other", "ks", "ks|1", "ks|x||/stop", "xx|1||/stop"])
def test_a_custom_id_of_somebody_else_is_none_of_ours(text: str) -> None:
    assert pressed(text) is None


async def test_a_line_that_fits_no_button_is_written_out() -> None:
    text, view = shown(Answer("Sure?", (Button("Yes", "/yes", "danger"), Button("Long", "/x " + "y" * 100))), 7)
    assert text == "Sure?\nLong: `/x " + "y" * 100 + "`"
    assert view is not None
    assert [item.label for item in view.children if isinstance(item, discord.ui.Button)] == ["Yes"]
    assert shown(Answer("Plain."), 7) == ("Plain.", None)


async def test_a_question_carries_its_button_on_and_keeps_to_discords_limits() -> None:
    button = Pressed(7, "a" * 60, "/memory correct w3")
    modal = question(button, "ks|7|a|/memory correct w3", "b" * 60).to_dict()
    assert modal["custom_id"] == "ks|7|a|/memory correct w3"
    assert modal["title"] == "b" * 45
    [field] = modal["components"]
    assert field["label"] == "a" * 45
    assert field["component"]["max_length"] == 1500


def test_what_was_typed_is_found_in_any_kind_of_modal() -> None:
    old = {"components": [{"type": 1, "components": [{"type": 4, "custom_id": "text", "value": " a b "}]}]}
    new = {"components": [{"type": 18, "component": {"type": 4, "custom_id": "text", "value": "c"}}]}
    assert (typed(old), typed(new), typed({})) == ("a b", "c", "")


def test_the_mark_of_a_growing_message_does_not_depend_on_its_text() -> None:
    one = Outgoing(5, "1", "Hel", "9", streamed=True)
    assert nonce_of(one) == nonce_of(Outgoing(5, "1", "Hello", "9", streamed=True))
    assert nonce_of(one) != nonce_of(Outgoing(5, "1", "Hel", "8", streamed=True))


PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 10


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF....WEBPVP8", "image/webp"),
        (b"<html>not found</html>", None),
        (b"", None),
    ],
)
def test_a_picture_is_told_by_its_first_bytes(data: bytes, kind: str | None) -> None:
    found = image("x", data)
    assert (found.media_type if found else None) == kind


def test_only_some_pictures_are_shown() -> None:
    files = [File(f"{number}.png", 1000, "", "image/png") for number in range(6)]
    assert wanted(files, 5000) == files[:4]
    assert wanted(files, 0) == wanted(files, 999) == []
    assert wanted([File("a.svg", 10, "", "image/svg+xml"), File("a.txt", 10, "", None)], 5000) == []
    assert len(wanted([File("a.png", 5_000_000, "", "image/png")] * 3, 6_000_000)) == 1
