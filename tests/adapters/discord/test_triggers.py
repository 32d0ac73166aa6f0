"""Which message is answered, followed or ignored, and why: a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.discord.settings import Listening, Rules
from adapters.triggers import Facts, decide

DM = Facts("person", "1", direct=True, channel="9")
TALK = Facts("person", "1", workspace="G", channel="C")
MENTION = replace(TALK, mentioned=True)
REPLY = replace(TALK, reply_to_me=True)
THREAD = replace(TALK, channel="T", parent="C", my_thread=True)
USUAL = Rules()


@pytest.mark.parametrize(
    ("facts", "rules", "kind", "reason"),
    [
        (DM, USUAL, "answer", "direct_message"),
        (
            DM,
            Rules(mentions=False, replies=False, threads=False, allow=frozenset("X"), deny=frozenset("9")),
            "answer",
            "direct_message",
        ),
        (TALK, USUAL, "ignore", "not_addressed"),
        (replace(TALK, mass_mention=True), USUAL, "ignore", "mass_mention"),
        (MENTION, USUAL, "answer", "mention"),
        (replace(MENTION, mass_mention=True), USUAL, "answer", "mention"),
        (MENTION, Rules(mentions=False), "ignore", "not_addressed"),
        (REPLY, USUAL, "answer", "reply"),
        (REPLY, Rules(replies=False), "ignore", "not_addressed"),
        (replace(REPLY, mentioned=True), Rules(replies=False), "answer", "mention"),
        (THREAD, USUAL, "follow", "thread"),
        (replace(THREAD, mentioned=True), USUAL, "answer", "mention"),
        (THREAD, Rules(threads=False), "ignore", "not_addressed"),
        (replace(THREAD, readable=False), USUAL, "ignore", "content_hidden"),
        (replace(THREAD, my_thread=False), USUAL, "ignore", "not_addressed"),
        # Who writes.
        (replace(DM, author="myself"), USUAL, "ignore", "own_message"),
        (replace(MENTION, author="bot"), USUAL, "ignore", "bot"),
        (replace(MENTION, author="webhook"), USUAL, "ignore", "webhook"),
        (replace(MENTION, author="bot"), Rules(bots=frozenset("1")), "answer", "mention"),
        (replace(TALK, author="bot"), Rules(bots=frozenset("1")), "ignore", "not_addressed"),
        (replace(DM, ordinary=False), USUAL, "ignore", "platform_notice"),
        # Where.
        (MENTION, Rules(deny=frozenset("G")), "ignore", "denied_place"),
        (MENTION, Rules(deny=frozenset("C")), "ignore", "denied_place"),
        (THREAD, Rules(deny=frozenset("C")), "ignore", "denied_place"),
        (MENTION, Rules(allow=frozenset("G")), "answer", "mention"),
        (MENTION, Rules(allow=frozenset("X")), "ignore", "not_allowed_place"),
        (MENTION, Rules(allow=frozenset("G"), deny=frozenset("C")), "ignore", "denied_place"),
        # The narrowest choice wins, and only in what it says.
        (MENTION, Rules(places={"G": Listening(mentions=False)}), "ignore", "not_addressed"),
        (MENTION, Rules(places={"G": Listening(mentions=False), "C": Listening(mentions=True)}), "answer", "mention"),
        (MENTION, Rules(places={"G": Listening(mentions=False), "C": Listening(threads=False)}), "ignore", "not_addressed"),
        (THREAD, Rules(places={"C": Listening(threads=False)}), "ignore", "not_addressed"),
        (THREAD, Rules(threads=False, places={"T": Listening(threads=True)}), "follow", "thread"),
    ],
)
def test_decides(facts: Facts, rules: Rules, kind: str, reason: str) -> None:
    decision = decide(facts, rules)
    assert (decision.kind, decision.reason) == (kind, reason)
