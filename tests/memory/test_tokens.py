"""Counting tokens without a network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import tokens

CJK = "你好，世界。日本語のテキスト 한국어"


@pytest.mark.parametrize(
    ("text", "o200k", "cl100k"),
    [("", 0, 0), ("hello world", 2, 2), ("I ❤️ Python 🐍👨‍👩‍👧‍👦!", 18, 26), (CJK, 12, 19), ("مرحبا بالعالم", 4, 10)],
)
def test_counts_are_those_of_the_real_encodings(text: str, o200k: int, cl100k: int) -> None:
    """Counts noted in the stack's measurements, from tiktoken itself."""
    assert (tokens.count(text, "o200k_base"), tokens.count(text, "cl100k_base")) == (o200k, cl100k)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base", tokens.ESTIMATED])
@pytest.mark.parametrize("text", ["<|endoftext|>", "\x00", "\ud800 broken", "a" * 100_000, "<|fim_prefix|>" * 50])
def test_nothing_a_user_types_stops_the_counting(text: str, encoding: str) -> None:
    assert tokens.count(text, encoding) >= 1


def test_an_unknown_model_is_counted_with_a_margin() -> None:
    assert tokens.encoding_of("llama3.2:3b") == tokens.ESTIMATED
    assert tokens.count(CJK, tokens.ESTIMATED) > tokens.count(CJK, "o200k_base")
    assert tokens.count("", tokens.ESTIMATED) == 0


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("text-davinci-003", tokens.ESTIMATED),
    ],
)
def test_a_models_encoding_is_known_by_its_name(model: str, encoding: str) -> None:
    assert tokens.encoding_of(model) == encoding


def test_a_message_costs_more_than_its_text() -> None:
    assert tokens.count_message("hello world") == 2 + tokens.PER_MESSAGE
    assert tokens.count_message("hello world", name="Ana") > tokens.count_message("hello world") + tokens.PER_NAME


@given(st.text(max_size=300))
def test_counting_again_gives_the_same(text: str) -> None:
    assert tokens.count(text) == tokens.count(text) <= 4 * len(text)


def test_a_seeded_folder_counts_with_no_network(tmp_path: Path) -> None:
    """A new process with a proxy that nobody answers at: any download would fail."""
    script = (
        "import pathlib; from memory import tokens; tokens.seed(pathlib.Path('cache'));"
        "print(tokens.count('hello world'), tokens.count('hello world', 'cl100k_base'))"
    )
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "HTTPS_PROXY": "http://127.0.0.1:9", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 2\n"
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_folder_that_is_gone_is_made_up_for_with_no_network(tmp_path: Path) -> None:
    """As for a process whose parent used a folder that was removed since."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "HTTPS_PROXY": "http://127.0.0.1:9", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", "from memory import tokens; print(tokens.count('hello world'))"],
        cwd=tmp_path,
        env={**environment, "TIKTOKEN_CACHE_DIR": str(tmp_path / "gone")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "2\n", done.stderr
    assert not (tmp_path / "gone").exists()


def test_seeding_twice_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "elsewhere")
    tokens.seed(tmp_path)
    first = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    tokens.seed(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == first
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)
