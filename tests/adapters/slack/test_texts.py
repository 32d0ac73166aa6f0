"""Slack's markup in and out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.slack.blocks import message
from adapters.slack.settings import LIMIT
from adapters.slack.texts import PLAIN, Names, harmless, held_back, mrkdwn, names_from, plain, readable
from adapters.text import split

NAMES = names_from({"U1": "Ada", "W2": "Ben"}, {"C1": "garden"})


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("<@U0BOT> hello", "hello"),
        ("<@U0BOT|keepsake>: hello", "hello"),
        ("hello <@U0BOT>", "hello @somebody"),
        ("ask <@U1> and <@W2|ben> and <@U9>", "ask @Ada and @Ben and @somebody"),
        ("in <#C1> or <#C2|kitchen> or <#C3>", "in #garden or #kitchen or #a channel"),
        ("<!here> <!channel|channel> <!subteam^S1|@cooks> <!subteam^S2>", "@here @channel @cooks @a group"),
        ("<!date^1764500000^{date}|Nov 30>", "Nov 30"),
        ("<!date^1764500000^{date}>", "2025-11-30 10:53 UTC"),
        ("<https://example.com/a?b=1&amp;c=2>", "https://example.com/a?b=1&c=2"),
        ("<https://example.com/|example.com>", "https://example.com/"),
        ("<https://example.com/|the page>", "the page (https://example.com/)"),
        ("<mailto:a@example.com|a@example.com>", "a@example.com"),
        ("a &lt; b &amp;&amp; c &gt; d &amp;lt;", "a < b && c > d &lt;"),
        ("&lt;@U1&gt; is no mention", "<@U1> is no mention"),
        ("*bold* :wave: `code`", "*bold* :wave: `code`"),
    ],
)
def test_what_people_write_arrives_as_they_see_it(sent: str, read: str) -> None:
    assert readable(sent, NAMES, me="U0BOT") == read


@pytest.mark.parametrize(
    "ping",
    ["<!channel>", "<!here|here>", "<!Everyone>", "<!subteam^S1>", "<!date^1^{date}|x>", "<@U123ABC>", "<@W1|x>", "<#C123|x>"],
)
def test_the_model_pings_nobody(ping: str) -> None:
    made = harmless(f"a {ping} b")
    assert "<" not in made
    assert len(made) == len(f"a {ping} b")


@pytest.mark.parametrize("code", ["<!DOCTYPE html>", "<!-- note -->", "a <b> c", "<@decorator>", "if a <#b"])
def test_other_brackets_stay(code: str) -> None:
    assert harmless(code) == code


@given(st.text(alphabet="<>!@#UC1chanel|^ x", max_size=60), st.integers(0, 60))
def test_a_growing_text_shows_nothing_that_is_taken_back(text: str, cut: int) -> None:
    assert harmless(text).startswith(held_back(harmless(text[:cut])))


def test_plain_text_is_without_most_marks_escaped_and_short() -> None:
    markdown = "## Head ##\n**b** & `a**b**c` [x](https://e.com)\n```py\n**kept** < 1\n```"
    assert plain(markdown) == "Head\nb &amp; `a**b**c` x (https://e.com)\n\n**kept** &lt; 1\n"
    assert len(plain("<&>" * 5000)) <= PLAIN
    assert plain("&" * 5000).endswith("&amp;…")


def test_mrkdwn_for_app_home() -> None:
    assert mrkdwn("# Head\n**b** *i* ~~s~~ [x](https://e.com/?a=1) a < b `**c**`") == (
        "*Head*\n*b* _i_ ~s~ <https://e.com/?a=1|x> a &lt; b `**c**`"
    )
    assert mrkdwn("```\n**code**\n```") == "```\n**code**\n```"


@given(st.text(max_size=30).map(lambda text: text * 900))
def test_every_message_is_within_the_limits(text: str) -> None:
    for part in split(text, LIMIT):
        made = message(part)
        assert len(made["blocks"][0]["text"]) <= 12_000
        assert len(made["text"]) <= PLAIN


def test_lookups_that_know_nothing() -> None:
    assert readable("<@U1> <#C1>", Names(lambda _: None), me="") == "@somebody #a channel"
