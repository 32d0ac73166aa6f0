"""`make check` runs what a change touches."""

from __future__ import annotations

from tests.touched import ALWAYS, touched


def test_a_module_brings_its_own_test_and_else_those_of_its_folder() -> None:
    assert touched(["memory/cache.py"]) == [*ALWAYS, "tests/memory/test_cache.py"]
    of_folder = touched(["bot/turn/state.py"])
    assert "tests/bot/turn/test_agent.py" in of_folder
    assert touched(["bot/turn/state.py", "bot/turn/state.py"]) == of_folder


def test_a_changed_test_runs_but_no_slow_one_and_papers_are_always_held() -> None:
    assert touched(["tests/memory/test_cache.py", "README.md", "tests/scenarios/test_slack.py"]) == [
        *ALWAYS,
        "tests/memory/test_cache.py",
    ]
    assert touched(["tests/memory/test_gone.py"]) == list(ALWAYS)
