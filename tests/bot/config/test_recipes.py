"""The recipes of docs/models.md: each snippet is a configuration that loads, and every vendor that is named has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.config.loading import load

PAGE = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
RECIPES = {
    match["name"]: (match["run"], match["yaml"])
    for match in re.finditer(r"^\*\*(?P<name>[\w .]+)\*\*(?P<run>[^\n]*)\n\n```yaml\n(?P<yaml>.*?)```", PAGE, re.M | re.S)
}
VENDORS = (
    "OpenAI",
    "Azure",
    "Anthropic",
    "Gemini",
    "Mistral",
    "DeepSeek",
    "Groq",
    "OpenRouter",
    "Ollama",
    "LM Studio",
    "vLLM",
    "llama.cpp",
)


def test_every_vendor_has_a_recipe() -> None:
    assert tuple(RECIPES) == VENDORS


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_recipe_is_a_configuration(vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, text = RECIPES[vendor]
    assert len(text.splitlines()) == 1, "two lines: what to run, what to write"
    if exported := re.search(r"`export (\w+)=\.\.\.`", run):
        monkeypatch.setenv(exported[1], "secret")
    (tmp_path / "config.yaml").write_text(text)
    loaded = load(tmp_path / "config.yaml")
    assert loaded.model_url.startswith(("https://", "http://127.0.0.1:"))
    assert loaded.config.model.chat
    assert (loaded.key == "secret") is bool(exported)
    assert bool(exported) != loaded.model_url.startswith("http://127"), "a vendor needs a key, a local server none"
