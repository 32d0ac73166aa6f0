"""Which message is answered, followed or ignored, and why: a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.triggers import Facts, ListenRules, Override, decide

DM = Facts("person", "1", direct=True, channel="9")
TALK = Facts("person", "1", workspace="G", channel="C")
MENTION = replace(TALK, mentioned=True)
REPLY = replace(TALK, reply_to_me=True)
THREAD = replace(TALK, channel="T", parent="C", my_thread=True)
USUAL = ListenRules()


@pytest.mark.parametrize(
    ("facts", "rules", "kind", "reason"),
    [
        (DM, USUAL, "answer", "direct_message"),
        (
            DM,
            ListenRules(mentions=False, replies=False, threads=False, allow=frozenset("X"), deny=frozenset("9")),
            "answer",
            "direct_message",
        ),
        (TALK, USUAL, "ignore", "not_addressed"),
        (replace(TALK, mass_mention=True), USUAL, "ignore", "mass_mention"),
        (MENTION, USUAL, "answer", "mention"),
        (replace(MENTION, mass_mention=True), USUAL, "answer", "mention"),
        (MENTION, ListenRules(mentions=False), "ignore", "not_addressed"),
        (REPLY, USUAL, "answer", "reply"),
        (REPLY, ListenRules(replies=False), "ignore", "not_addressed"),
        (replace(REPLY, mentioned=True), ListenRules(replies=False), "answer", "mention"),
        (THREAD, USUAL, "follow", "thread"),
        (replace(THREAD, mentioned=True), USUAL, "answer", "mention"),
        (THREAD, ListenRules(threads=False), "ignore", "not_addressed"),
        (replace(THREAD, readable=False), USUAL, "ignore", "content_hidden"),
        (replace(THREAD, my_thread=False), USUAL, "ignore", "not_addressed"),
        # Who writes.
        (replace(DM, author="myself"), USUAL, "ignore", "own_message"),
        (replace(MENTION, author="bot"), USUAL, "ignore", "bot"),
        (replace(MENTION, author="webhook"), USUAL, "ignore", "webhook"),
        (replace(MENTION, author="bot"), ListenRules(bots=frozenset("1")), "answer", "mention"),
        (replace(TALK, author="bot"), ListenRules(bots=frozenset("1")), "ignore", "not_addressed"),
        (replace(DM, ordinary=False), USUAL, "ignore", "platform_notice"),
        # Where.
        (MENTION, ListenRules(deny=frozenset("G")), "ignore", "denied_place"),
        (MENTION, ListenRules(deny=frozenset("C")), "ignore", "denied_place"),
        (THREAD, ListenRules(deny=frozenset("C")), "ignore", "denied_place"),
        (MENTION, ListenRules(allow=frozenset("G")), "answer", "mention"),
        (MENTION, ListenRules(allow=frozenset("X")), "ignore", "not_allowed_place"),
        (MENTION, ListenRules(allow=frozenset("G"), deny=frozenset("C")), "ignore", "denied_place"),
        # The narrowest choice wins, and only in what it says.
        (MENTION, ListenRules(places={"G": Override(mentions=False)}), "ignore", "not_addressed"),
        (MENTION, ListenRules(places={"G": Override(mentions=False), "C": Override(mentions=True)}), "answer", "mention"),
        (MENTION, ListenRules(places={"G": Override(mentions=False), "C": Override(threads=False)}), "ignore", "not_addressed"),
        (THREAD, ListenRules(places={"C": Override(threads=False)}), "ignore", "not_addressed"),
        (THREAD, ListenRules(threads=False, places={"T": Override(threads=True)}), "follow", "thread"),
    ],
)
def test_decides(facts: Facts, rules: ListenRules, kind: str, reason: str) -> None:
    decision = decide(facts, rules)
    assert (decision.kind, decision.reason) == (kind, reason)
