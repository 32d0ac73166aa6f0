"""The texts for the model: which file a model gets."""

import json
from pathlib import Path

from bot import prompts


def test_a_file_beside_the_configuration_replaces_a_text_for_all_models_or_for_one(tmp_path: Path) -> None:
    builtin = prompts.load("gpt", tmp_path / "none")
    (tmp_path / "Qwen_Qwen3-8B").mkdir()
    (tmp_path / "Qwen_Qwen3-8B" / "system.md").write_text("For Qwen.\n")
    (tmp_path / "system.md").write_text("For all.\n")
    qwen, other = prompts.load("Qwen/Qwen3-8B", tmp_path), prompts.load("gpt", tmp_path)
    assert (qwen.system, other.system) == ("For Qwen.", "For all.")
    assert qwen.summary == other.summary == builtin.summary
    assert len({each.version for each in (builtin, qwen, other)}) == 3, "a cached main context of other texts is not used"


def test_a_models_name_reaches_no_file_outside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "system.md").write_text("Elsewhere.")
    folder = tmp_path / "prompts"
    folder.mkdir()
    for name in ("..", "../", str(tmp_path), "."):
        assert prompts.load(name, folder).system != "Elsewhere.", name


def test_a_small_model_gets_compact_instructions_unless_the_operator_has_own_ones(tmp_path: Path) -> None:
    small, large = prompts.load("m", tmp_path, small=True), prompts.load("m", tmp_path)
    assert len(small.system.split()) < 0.6 * len(large.system.split())
    assert small.version != large.version
    assert "send_message` call" not in prompts.load("m", growing=True, small=True).system
    (tmp_path / "system.md").write_text("Mine.")
    assert prompts.load("m", tmp_path, small=True).system == "Mine."


def test_an_example_is_shown_where_its_functions_are(tmp_path: Path) -> None:
    shown = prompts.examples(["working_context_append", "recall_storage_search"]).splitlines()
    assert 5 <= len(shown) <= 10
    assert not any("set_timer" in line for line in shown)
    answers = [json.loads(line.partition(" -> ")[2]) for line in shown]
    assert all(list(answer) == ["calls", "text"] for answer in answers), "calls first: the text is written with them in view"
    assert prompts.examples(["look_up"]) == ""


def test_the_instructions_say_when_to_page_when_to_stop_and_what_memory_pressure_asks() -> None:
    text = prompts.load("gpt").system
    for said in ("Go to the next page while", "stop when you have it", "On a memory pressure alert, save"):
        assert said in text
    assert len(text.split()) < 500, "short: it goes out with every request"
