"""The opener task, small: it runs end to end with the rehearsal model, and its controls unmask what they are there for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot import rehearsal
from bot.bench import openers
from bot.config.findings import StartError
from bot.embedded import Servers

TOLD = [
    ("Hello, how are you?", "Fine! I just walked my dog Biscuit.", "I have a dog named Biscuit."),
    ("Nice. What do you do?", "I am a nurse in a children's hospital.", "I work as a nurse."),
    ("Did you sleep well?", "No, I was baking bread all night.", "I bake bread."),
]


def made_up(folder: Path) -> Path:
    """One chat in the form of the data."""
    sessions = [
        {
            "utterances": [
                {"n": f"S{number}:1", "speaker": 0, "text": asked, "fact": None},
                {"n": f"S{number}:2", "speaker": 1, "text": said, "fact": fact},
            ]
        }
        for number, (asked, said, fact) in enumerate(TOLD, 1)
    ]
    sessions.append({"utterances": [{"n": "S4:1", "speaker": 0, "text": "How is Biscuit doing?", "fact": None}]})
    gold = [["I am a bot."], [fact for _, _, fact in TOLD]]
    chat = {
        "id": "one",
        "sessions": sessions,
        "gold_persona_1to3": gold,
        "human_opener_session4": "How is Biscuit, your dog, doing?",
    }
    (folder / "msc-made-up.jsonl").write_text(json.dumps(chat) + "\n", encoding="utf-8")
    return folder


async def test_the_task_runs_with_the_rehearsal_model(running: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBEDDING", raising=False)
    [sample] = openers.read(made_up(tmp_path), None)
    assert sample.chat.first == "speaker 1"
    assert sample.facts == tuple(fact for _, _, fact in TOLD)
    async with rehearsal.serve() as url:
        model, human, generic, parroted = await openers.run(running, [sample], openers.Asked(url, rehearsal.MODEL, ""))
    assert model.calls == 1
    assert model.silent == 0
    assert human.simh[0] == pytest.approx(1, abs=1e-3)
    assert parroted.copied == [1.0], "a fact said back is all copied"
    assert parroted.sim1[0] > human.sim1[0] > generic.sim1[0]
    assert human.copied[0] < 0.5
    lines = openers.report([model, human, generic, parroted], 1).splitlines()
    assert [line.split()[0] for line in lines[1:5]] == [rehearsal.MODEL.split()[0], "human", "generic", "parroted"]


def test_copied_words() -> None:
    assert openers.copied("I have a dog.", "I have a dog named Biscuit") == 1.0
    assert openers.copied("How is your dog?", "I have a dog.") == 0.25
    assert openers.copied("", "I have a dog.") == 0.0


def test_a_folder_without_the_data_gets_a_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"^--data: no Multi-Session Chats at "):
        openers.read(tmp_path, None)
    (tmp_path / "msc.jsonl").write_text("{}\n")
    with pytest.raises(StartError, match="^--data: "):
        openers.read(tmp_path, None)
