"""Splitting: every chunk fits, fences are balanced, nothing is lost."""

from __future__ import annotations

import re
import time

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.text import SMALLEST, split

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")


def read(text: str) -> tuple[str, str | None]:
    """As a reader sees it: the text without white space and fence lines, and the marker of the fence that is open at the end."""
    mark: str | None = None
    kept = []
    for line in text.split("\n"):
        found = FENCE.fullmatch(line.rstrip("\r"))
        if found and mark is None and not ("`" in found[2] and found[1][0] == "`"):
            mark = found[1]
        elif found and mark and found[1][0] == mark[0] and len(found[1]) >= len(mark) and not found[2].strip():
            mark = None
        else:
            kept += line.split()
    return "".join(kept), mark


WORDS = st.sampled_from(
    [
        "word",
        "a",
        "longer-word",
        "https://example.org/path?q=1",
        "[label with spaces](https://example.org/x)",
        "`inline code`",
        "日本語。",
        "👨‍👩‍👧‍👦",
        "🇩🇪🇫🇷",
        "e\u0301",
        "<https://a.example|b>",
        "x" * 70,
        "\x0b",
        "\u2028",
        "\u200d",
        "`",
        "~~",
        "!",
    ]
)
LINES = st.lists(WORDS, max_size=12).map(" ".join)
INFO = st.sampled_from(["", "python", "py title=x", "i" * 500, " spaced info "])
MARK = st.sampled_from(["```", "````", "~~~", "~~~~~"])
BLOCK = st.builds(
    lambda mark, info, indent, body, close: f"{indent}{mark}{info}\n{body}" + (f"\n{indent}{mark}" if close else ""),
    MARK,
    INFO,
    st.sampled_from(["", "  ", "    "]),
    st.lists(LINES | st.just("```") | st.just("    indented"), max_size=20).map("\n".join),
    st.booleans(),
)
TEXT = st.lists(LINES | BLOCK, max_size=12).map("\n".join) | st.text(max_size=300)


@given(TEXT, st.integers(SMALLEST, 300))
@example("```" + "i" * 500 + "\n" + "code line\n" * 50 + "```", 100)
@example("````md\n```py\nx\n```\n" + "y\n" * 200 + "````\nend", 60)
@example("~~~\n" + "x" * 500, SMALLEST)
@example("```\n```" + "i" * 500, SMALLEST)
@example("```\n```" + " " * 50 + "x", SMALLEST)
@example("  ```\n  a\n  ```", SMALLEST)
@example("a\u0301" * 200 + "\u0301" * 300, SMALLEST)
def test_fits_is_balanced_and_complete(text: str, limit: int) -> None:
    chunks = split(text, limit)
    for chunk in chunks:
        assert 0 < len(chunk) <= limit
        assert chunk.strip()
        assert read(chunk)[1] is None
    assert "".join(read(chunk)[0] for chunk in chunks) == read(text)[0]


@given(
    st.lists(st.sampled_from(["👨‍👩‍👧‍👦", "🇩🇪", "e\u0301", "한", "ab", "👍🏽"]), max_size=200).map("".join),
    st.integers(SMALLEST, 90),
)
def test_grapheme_clusters_stay_whole(text: str, limit: int) -> None:
    clusters = regex.findall(r"\X", text)
    assert [c for chunk in split(text, limit) for c in regex.findall(r"\X", chunk)] == clusters


@given(
    st.lists(
        st.sampled_from(["https://example.org/a/b", "[a b c](https://example.org/)", "word", "`a b`"]), min_size=1, max_size=80
    )
)
def test_links_and_words_stay_whole(words: list[str]) -> None:
    chunks = split(" ".join(words), 60)
    assert " ".join(chunks) == " ".join(words)
    for chunk in chunks:
        assert chunk.count("[") == chunk.count(")")
        assert chunk.count("`") % 2 == 0


def test_short_text_is_one_message() -> None:
    assert split("hello\n\nworld", 2000) == ["hello\n\nworld"]
    assert split("```py\nx = 1\n```", 2000) == ["```py\nx = 1\n```"]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\n" * 5000])
def test_blank_text_is_no_message(text: str) -> None:
    assert split(text, 2000) == []


def test_code_points_count() -> None:
    assert len(split("😀" * 2000, 2000)) == 1
    assert [len(chunk) for chunk in split("😀" * 2001, 2000)] == [2000, 1]


def test_prefers_paragraphs_then_lines_then_sentences_then_words() -> None:
    assert split("a" * 30 + "\n\n" + "b" * 30, 40) == ["a" * 30, "b" * 30]
    assert split("a" * 30 + "\n" + "b" * 30, 40) == ["a" * 30, "b" * 30]
    assert split("One two three four five. " + "six seven eight nine", 40) == ["One two three four five.", "six seven eight nine"]
    assert split("aaaa " * 10, 42) == [" ".join(["aaaa"] * 8), "aaaa aaaa"]


def test_a_block_that_fits_is_not_cut() -> None:
    block = "```py\n" + "line\n" * 10 + "```"
    assert split("intro " * 8 + "\n" + block, 80) == [("intro " * 8).strip(), block]


def test_code_keeps_its_lines_and_gets_its_language_again() -> None:
    body = "\n".join(f"    line {number}" for number in range(30))
    chunks = split(f"```py\n{body}\n```", 100)
    assert len(chunks) > 3
    assert all(chunk.startswith("```py\n") and chunk.endswith("\n```") for chunk in chunks)
    assert "\n".join(chunk[6:-4] for chunk in chunks) == body


def test_a_limit_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        split("x", SMALLEST - 1)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "<" * 100_000,
        "`" * 100_000,
        "https://" * 12_500,
        '."' * 50_000,
        "\u0301" * 100_000,
        " " * 100_000 + "x",
        "a\n" * 50_000,
    ],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    before = time.process_time()
    split(text, 2000)
    assert time.process_time() - before < 5
