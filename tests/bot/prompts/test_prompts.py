"""The texts for the model: which file a model gets."""

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


def test_the_instructions_say_when_to_page_when_to_stop_and_what_memory_pressure_asks() -> None:
    text = prompts.load("gpt").system
    for said in ("Go to the next page while", "stop when you have it", "On a memory pressure alert, save"):
        assert said in text
    assert len(text.split()) < 500, "short: it goes out with every request"
