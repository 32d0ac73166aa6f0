"""The parts of the Slack adapter that decide: ids, triggers, command words, blocks, signatures, quiet hours, ears, the manifest."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError

from adapters.base import Answer, Button, Outgoing, TryLater, Undeliverable, Unreachable
from adapters.slack import blocks
from adapters.slack.lines import Slash, command_in
from adapters.slack.manifest import manifest
from adapters.slack.names import Scope, key_of, parted, place_of, scope_of, spot, stamp, thread_of
from adapters.slack.outbound import mark_of, meaning
from adapters.slack.people import person_of, profile_of, undisturbed_until
from adapters.slack.rooms import room_of
from adapters.slack.settings import SCOPES
from adapters.slack.socket import Ears
from adapters.slack.status import Statuses
from adapters.slack.triggers import facts_of, is_stranger
from adapters.slack.web import signed_by
from adapters.triggers import ListenRules, decide

ACME = Scope("T1")


def test_whose_event_it_is() -> None:
    assert scope_of({"team_id": "T1", "event": {}}) == Scope("T1")
    # In a shared channel the first authorization is ours.
    assert scope_of({"team_id": "T9", "authorizations": [{"team_id": "T1", "enterprise_id": None}]}) == Scope("T1")
    org = scope_of({"team_id": None, "authorizations": [{"team_id": None, "enterprise_id": "E1", "is_enterprise_install": True}]})
    assert (org, org.workspace, org.realm) == (Scope("", "E1", True), "E1", "E1")
    assert scope_of({"team": {"id": "T1", "enterprise_id": "E1"}}) == Scope("T1", "E1")
    assert scope_of({"team": None, "user": {"id": "U1", "team_id": "T3"}, "enterprise": {"id": "E1"}}) == Scope("T3", "E1")
    assert Scope("T1", "E1").realm == "E1"


def test_places_and_keys() -> None:
    assert parted(spot("C1", "1.2")) == ("C1", "1.2")
    assert parted(spot("D1", None)) == ("D1", None)
    mention = {"type": "app_mention", "event_ts": "5.6"}
    assert stamp(mention) == "5.6"
    assert key_of(ACME, "C1", stamp(mention)) == key_of(ACME, "C1", stamp({"ts": "5.6", "event_ts": "5.7"})) == "T1:C1:5.6"
    assert thread_of({"ts": "1.0"}, direct=False, answer_in_thread=True) == "1.0"
    assert thread_of({"ts": "1.0"}, direct=False, answer_in_thread=False) is None
    assert thread_of({"ts": "1.0"}, direct=True, answer_in_thread=True) is None
    assert thread_of({"ts": "2.0", "thread_ts": "1.0"}, direct=True, answer_in_thread=False) == "1.0"
    place = place_of(ACME, "C1", "1.0", "public", "garden")
    assert (place.external_id, place.parent, place.workspace, place.kind) == ("C1:1.0", "C1", "T1", "public")
    # Of an organisation's channel nobody knows who may read it, unless it says its workspace.
    org = Scope("", "E1", True)
    assert place_of(org, "C1", None, "public", "").kind is None
    assert place_of(org, "C1", None, "public", "", "T2").workspace == "T2"


def test_what_a_channel_is() -> None:
    assert room_of({"is_channel": True, "name": "garden"}).kind == "public"
    assert room_of({"is_channel": True, "is_private": True}).kind == "private"
    assert room_of({"is_channel": True, "is_mpim": True}).kind == "private"
    assert room_of({"is_channel": True, "is_ext_shared": True}).kind == "private"
    assert room_of({"is_im": True, "user": "U1"}).kind == "direct"
    assert room_of({}).kind == "private"


@pytest.mark.parametrize(
    ("event", "options", "kind", "reason"),
    [
        ({"user": "U1", "text": "hello", "channel": "D1"}, {"direct": True}, "answer", "direct_message"),
        ({"user": "U1", "text": "", "files": [{}], "subtype": "file_share"}, {"direct": True}, "answer", "direct_message"),
        ({"user": "U1", "text": "x", "subtype": "thread_broadcast"}, {"direct": True}, "answer", "direct_message"),
        ({"user": "U1", "text": "x", "subtype": "me_message"}, {"direct": True}, "answer", "direct_message"),
        ({"user": "U1", "text": "<@UBOT> hello"}, {}, "answer", "mention"),
        ({"user": "U1", "text": "", "type": "app_mention"}, {}, "answer", "mention"),
        ({"user": "U1", "text": "<!channel> hello"}, {}, "ignore", "mass_mention"),
        ({"user": "U1", "text": "hello"}, {}, "ignore", "not_addressed"),
        ({"user": "U1", "text": "hello", "thread_ts": "1"}, {"mine": True}, "follow", "thread"),
        ({"user": "U1", "text": "hello", "thread_ts": "1", "parent_user_id": "UBOT"}, {}, "follow", "thread"),
        ({"user": "U1", "text": "joined", "subtype": "channel_join"}, {"direct": True}, "ignore", "platform_notice"),
        ({"user": "UBOT", "text": "mine"}, {"direct": True}, "ignore", "own_message"),
        ({"bot_id": "BBOT", "text": "mine"}, {"direct": True}, "ignore", "own_message"),
        ({"bot_id": "B9", "user": "U9", "text": "<@UBOT> hi"}, {}, "ignore", "bot"),
        ({"bot_id": "B8", "text": "<@UBOT> hi", "subtype": "bot_message"}, {}, "answer", "mention"),
    ],
)
def test_what_is_answered(event: dict[str, Any], options: dict[str, bool], kind: str, reason: str) -> None:
    rules = ListenRules(bots=frozenset({"B8"}))
    facts = facts_of(
        event, ACME, "UBOT", "BBOT", direct=options.get("direct", False), mine=options.get("mine", False), bots=rules.bots
    )
    decision = decide(facts, rules)
    assert (decision.kind, decision.reason) == (kind, reason)


def test_people() -> None:
    assert is_stranger({"user_team": "T9"}, ACME) == "T9"
    assert is_stranger({"user_team": "T1", "team": "T9"}, ACME) == ""
    assert is_stranger({}, ACME) == ""
    profile = profile_of(
        {
            "id": "U1",
            "name": "ada",
            "tz": "Europe/Berlin",
            "is_admin": True,
            "team_id": "T1",
            "profile": {"display_name": "Ada"},
            "enterprise_user": {"id": "W1", "enterprise_id": "E1"},
        }
    )
    assert (profile.name, profile.timezone, profile.roles) == ("Ada", "Europe/Berlin", ("admin",))
    assert person_of(Scope("T1", "E1"), "U1", profile).author_id == "slack:E1:W1"
    assert person_of(ACME, "U2", None).author_id == "slack:T1:U2"
    assert person_of(ACME, "U2", None, home="T9").author_id == "slack:T9:U2"
    assert profile_of({"id": "U1", "tz": "Mars/Olympus"}).timezone is None


def test_do_not_disturb() -> None:
    now = datetime(2026, 11, 30, 22, tzinfo=UTC)
    at = now.timestamp()
    hours = {"dnd_enabled": True, "next_dnd_start_ts": at - 60, "next_dnd_end_ts": at + 3600}
    assert undisturbed_until(hours, now) == datetime(2026, 11, 30, 23, tzinfo=UTC)
    assert undisturbed_until({**hours, "dnd_enabled": False}, now) is None
    assert undisturbed_until({**hours, "next_dnd_start_ts": at + 60}, now) is None
    assert undisturbed_until({**hours, "snooze_enabled": True, "snooze_endtime": at + 7200}, now) == datetime(
        2026, 12, 1, tzinfo=UTC
    )
    assert undisturbed_until({}, now) is None


SLASHES = [
    Slash("help"),
    Slash("memory view"),
    Slash("memory search", "/memory search x"),
    Slash("stop"),
    Slash("settings", "/settings timezone Europe/Berlin"),
]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("memory view", "/memory view"),
        ("Memory View", "/memory view"),
        ("memory search my dog's birthday please", "/memory search my dog's birthday please"),
        ("memory", "/memory"),
        ("stop", "/stop"),
        ("stop it", None),
        ("help", "/help"),
        ("help me with this", None),
        ("settings", "/settings"),
        ("settings timezone Europe/Berlin", "/settings timezone Europe/Berlin"),
        ("settings in my life have changed a lot lately", None),
        ("/stop", "/stop"),
        ("stop\nplease", None),
        ("my memory view is bad", None),
    ],
)
def test_words_that_are_commands(text: str, line: str | None) -> None:
    assert command_in(text, SLASHES) == line


def test_buttons_carry_their_line_and_their_person() -> None:
    shown = blocks.answer(
        "**Really?**", [Button("Yes", "/memory forget m1", "danger"), Button("Mend", "/correct", ask="How?")], "slack:T1:U1"
    )
    first, second = shown["blocks"][-1]["elements"]
    assert first["style"] == "danger"
    assert blocks.pressed(first["value"]) == ("/memory forget m1", "slack:T1:U1", "")
    assert blocks.pressed(second["value"]) == ("/correct", "slack:T1:U1", "How?")
    assert blocks.pressed("not ours") is None
    assert blocks.pressed(None) is None
    view = blocks.modal("How?", {"line": "/correct", "for": "slack:T1:U1"}, None)
    typed = {**view, "state": {"values": {blocks.FIELD: {blocks.INPUT: {"value": "like\nthis"}}}}}
    assert blocks.submitted(typed) == ({"line": "/correct", "for": "slack:T1:U1"}, "like this")
    assert blocks.submitted({"private_metadata": "[]", "state": {}}) is None
    # One that is too long for a value is left out rather than cut.
    assert blocks.answer("x", [Button("No", "/x " + "y" * 3000)], "p")["blocks"][1:] == []


def test_app_home_keeps_to_slacks_limits() -> None:
    view = blocks.home(
        [("What I remember", Answer("line & more\n" * 3000, tuple(Button(str(n), f"/x {n}") for n in range(60))))], "p"
    )
    assert len(view["blocks"]) <= 100
    assert all(len(block["text"]["text"]) <= 3000 for block in view["blocks"] if block["type"] == "section")
    assert all(len(block["elements"]) <= 25 for block in view["blocks"] if block["type"] == "actions")


def refusal(code: str, status: int = 200, **headers: str) -> SlackApiError:
    class Response:
        data = {"ok": False, "error": code}
        status_code = status

    Response.headers = headers  # type: ignore[attr-defined]
    return SlackApiError(code, Response())  # type: ignore[arg-type]


def test_what_a_refusal_means() -> None:
    later = meaning(refusal("ratelimited", 429, **{"Retry-After": "7"}))
    assert isinstance(later, TryLater)
    assert later.seconds == 7
    for code in ("channel_not_found", "is_archived", "msg_too_long"):
        assert isinstance(meaning(refusal(code)), Undeliverable)
    assert isinstance(meaning(refusal("user_not_found")), Unreachable)
    # A dead token: kept, not given up.
    for code in ("account_inactive", "token_revoked", "invalid_auth"):
        assert isinstance(meaning(refusal(code)), TryLater)
    for code in ("internal_error", "fatal_error", "service_unavailable"):
        assert meaning(refusal(code)) is None


def test_a_mark_stays_the_same_while_a_reply_grows() -> None:
    first = Outgoing(1, "C1", "a", "5.6", streamed=True)
    assert mark_of(first) == mark_of(Outgoing(1, "C1", "a and more", "5.6", streamed=True))
    assert mark_of(first) != mark_of(Outgoing(1, "C1", "a", "7.8", streamed=True))
    assert mark_of(Outgoing(1, "C1", "a")) != mark_of(Outgoing(1, "C1", "b"))


def signature(secret: str, body: bytes, stamp: str) -> str:
    return "v0=" + hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()


def test_signatures() -> None:
    now, body = 1_800_000_000.0, b"{}"
    good = signature("two", body, "1800000000")
    assert signed_by(["one", "two"], body, "1800000000", good, now) == 1
    assert signed_by(["one"], body, "1800000000", good, now) is None
    assert signed_by(["two"], b"{ }", "1800000000", good, now) is None
    assert signed_by(["two"], body, "1800000000", good, now + 301) is None
    assert signed_by(["two"], body, "1800000000", good, now - 301) is None
    for stamp_, mark in (("", ""), ("x", good), ("1800000000", "v0=ü"), ("٣", good), ("9" * 400, good)):
        assert signed_by(["two"], body, stamp_, mark, now) is None


def test_ears_notice_what_they_do_not_hear() -> None:
    clock = [0.0]
    ears = Ears(lambda: clock[0])
    ears.posted()
    clock[0] = 50
    assert not ears.deaf(60, 600)  # it is not known yet whether our own messages come back
    ears.heard(own=True)
    ears.posted()
    clock[0] = 71
    assert ears.deaf(60, 600) == "deaf"
    ears.anew()
    assert not ears.deaf(60, 600)
    clock[0] = 672
    assert ears.deaf(60, 600) == "quiet for long"


async def test_a_status_is_never_written_after_the_end() -> None:
    written: list[str] = []
    asked, gate = asyncio.Event(), asyncio.Event()

    async def write(_: str, status: str) -> bool:
        if status:
            asked.set()
            await gate.wait()
        written.append(status)
        return True

    async def broken_off() -> None:
        async with statuses.working("D1"):
            await asked.wait()
            raise RuntimeError

    statuses = Statuses(write)
    async with statuses.working("D1"):
        pass  # over before it shows
    await statuses.settle(1)
    assert written == []
    with pytest.raises(RuntimeError):
        await broken_off()
    # The call was on its way when the work broke off.
    gate.set()
    await statuses.settle(1)
    assert written[0]
    assert written[-1] == ""


def test_the_manifest_asks_for_what_is_used() -> None:
    made = manifest("Keepsake")
    assert set(made["oauth_config"]["scopes"]["bot"]) == SCOPES
    assert made["settings"]["socket_mode_enabled"] is True
    assert {"message.im", "message.channels", "app_mention", "app_home_opened", "team_join"} <= set(
        made["settings"]["event_subscriptions"]["bot_events"]
    )
    assert len(made["features"]["agent_view"]["agent_description"]) <= 300
    over_http = manifest("Keepsake", public_url="https://keepsake.example.com/", oauth=True)
    assert over_http["settings"]["socket_mode_enabled"] is False
    assert over_http["settings"]["interactivity"]["request_url"] == "https://keepsake.example.com/slack/events"
    assert over_http["oauth_config"]["redirect_urls"] == ["https://keepsake.example.com/slack/oauth_redirect"]
