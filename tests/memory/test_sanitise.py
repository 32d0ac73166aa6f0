"""What comes from outside is made storable, and nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.db import Database
from memory.sanitise import clean, clean_json

ANY_TEXT = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("raw", "stored"),
    [
        ("a\x00b", "ab"),
        ("\x00", ""),
        ("a\ud83db", "a\ufffdb"),
        ("end \udc00", "end \ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ufeffBOM, e\u0301, ﬁ, \r\n\t\x07 <|endoftext|>", "\ufeffBOM, e\u0301, ﬁ, \r\n\t\x07 <|endoftext|>"),
        ("", ""),
    ],
)
def test_examples(raw: str, stored: str) -> None:
    assert clean(raw) == stored


def test_length_is_kept() -> None:
    text = "x😀" * 60_000
    assert clean(text) == text


@given(ANY_TEXT)
def test_can_be_encoded_and_changes_nothing_else(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert "\x00" not in cleaned
    assert clean(cleaned) == cleaned
    if "\x00" not in text and text.isprintable():
        assert cleaned == text


def test_json() -> None:
    raw = {"a\x00": ["\ud800", {"b": float("nan"), "c": 1.5, "d": None, "e": True}], "t": ("x", float("inf"))}
    assert clean_json(raw) == {"a": ["\ufffd", {"b": None, "c": 1.5, "d": None, "e": True}], "t": ["x", None]}


async def test_postgres_takes_it(db: Database) -> None:
    raw = {"text": "a\x00\ud83d\U0001f600" * 30_000}
    async with db.bare() as connection:
        cursor = await connection.execute("SELECT %s::jsonb AS back", (json.dumps(clean_json(raw)),))
        row = await cursor.fetchone()
    assert row == {"back": {"text": "a\ufffd\U0001f600" * 30_000}}
