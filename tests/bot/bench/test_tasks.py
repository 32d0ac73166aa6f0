"""`bot bench tasks`: sixty tasks for any endpoint; who does them right is told so, and who does not is, too."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bot.bench import tasks
from bot.config.findings import StartError
from bot.config.loading import Loaded, load
from bot.functions import BY_NAME
from bot.model.calls import Call, parse_arguments
from bot.model.replies import Reply
from bot.turn.specimen import Attempt, Task
from tests.servers.model import Request, ScriptedModel, Status, Step, call, reply

ALL = tasks.tasks()
OTHERS: dict[str, dict[str, object]] = {
    "Remind me in 20": {"purpose": "bread", "in_minutes": 20},
    "Erinnere mich in 45": {"purpose": "Wäsche", "at": "2026-11-30T10:45"},
    "Remind me tomorrow": {"purpose": "dentist", "at": "2026-12-01T08:00"},
    "Erinnere mich morgen": {"purpose": "Müll", "at": "2026-12-01T18:00"},
    "Cancel timer": {"timer": 4},
    "Lösch bitte": {"timer": 7},
    "I live in Tokyo": {"zone": "Asia/Tokyo"},
    "Yes, please": {"request": 3, "agreed": True},
}


def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str = "", calls: str = "native") -> Loaded:
    monkeypatch.setenv("KEEPSAKE_DATA", str(tmp_path / "data"))
    file = tmp_path / "config.yaml"
    file.write_text(f"model:\n  base_url: {json.dumps(url)}\n  chat: {'scripted' if url else json.dumps('')}\n  calls: {calls}\n")
    return load(file)


def right(request: Request) -> Step:
    """A model that does every task."""
    said = "\n".join(map(str, request.contents("user")))
    results = request.contents("tool")
    task = max(
        (one for one in ALL if json.dumps(one.said, ensure_ascii=False)[1:-1] in said), key=lambda one: said.rfind(one.said)
    )
    pages = len(task.found)
    answer = (
        " ".join((*task.found, *task.known))
        or "No, I am a program, not that: 144, 31, Monday 30, Montag, lemon, Ulm, nicht, kein."
    )
    name = next((name for name in task.call.split("|") if name in request.functions), "")
    if not task.call or (results and (len(results) >= pages or not task.call.endswith("_search"))):
        return reply(answer)
    arguments: dict[str, object] = next((one for said, one in OTHERS.items() if task.said.startswith(said)), {})
    if name.endswith("_search"):
        arguments = {"query": task.said, "page": len(results) + 1}
    elif name == "working_context_replace":
        arguments = {"old": task.known[0], "new": task.said}
    elif name == "working_context_remove":
        arguments = {"content": task.known[0]}
    elif name == "set_timer":
        arguments = {**arguments, "asked": task.said}
    elif name == "forget":
        arguments = {"words": "jazz"}
    elif name == "send_message":
        arguments = {"text": task.said}
    elif name in ("working_context_append", "archival_storage_insert"):
        arguments = {"content": " ".join((*task.before, task.said))}
    return reply("" if name.endswith("_search") else answer, call(name, **arguments))


@pytest.mark.parametrize("small", [False, True])
async def test_who_does_everything_right_gets_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    said: list[str] = []
    async with ScriptedModel(policy=right) as model:
        result = await tasks.run(loaded(tmp_path, monkeypatch, model.base_url), small=small, say=said.append)
    assert said == []
    assert result.row[1:4] == ("39 of 39", "60 of 60", "60 of 60")
    last = tasks.report([result]).splitlines()[-1]
    assert last.split()[:3] == ["scripted,", "native,", "small" if small else "large"]


async def test_who_calls_nothing_and_talks_gets_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    async with ScriptedModel(policy=lambda _: reply("I am Mika, a companion who remembers. Call 112.")) as model:
        result = await tasks.run(loaded(tmp_path, monkeypatch, model.base_url), small=False, say=said.append)
    assert result.row[1] == "0 of 39"
    assert result.row[3].split()[0] in [str(number) for number in range(8, 20)], "greetings are answered by anything"
    assert any("the call and the answer to 'I also have a cat" in line for line in said)


async def test_the_rehearsal_model_does_some_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = await tasks.run(loaded(tmp_path, monkeypatch), small=False, say=lambda _: None)
    needed, _, both = (int(cell.split()[0]) for cell in result.row[1:4])
    assert needed >= 8
    assert both >= 15


async def test_an_endpoint_that_is_away_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedModel(policy=lambda _: Status(401)) as model:
        with pytest.raises(StartError, match=r"bench tasks: the model does not answer.*bot doctor"):
            await tasks.run(loaded(tmp_path, monkeypatch, model.base_url), small=False, say=lambda _: None)


def test_the_tasks_cover_every_act_of_memory_in_two_languages() -> None:
    assert len(ALL) == 60
    needing = [task for task in ALL if task.call]
    assert len(needing) == 39, "the share of the first table: 13 of 20"
    acts = Counter(name for task in needing for name in task.call.split("|"))
    assert set(acts) <= set(BY_NAME)
    assert set(BY_NAME) - set(acts) == {"stay_silent", "set_speaking_leave", "archival_storage_read"}
    assert sum(_german(task) for task in ALL) >= 25
    for said, arguments in OTHERS.items():
        [task] = [one for one in ALL if one.said.startswith(said)]
        assert isinstance(parse_arguments(json.dumps(arguments), BY_NAME[task.call].takes), dict), said


def _german(task: Task) -> bool:
    return any(
        word in f" {task.said} ".casefold()
        for word in ("ich ", "mir ", "mein", "bitte", "wie ", "guten", "dir", "welche", "bist")
    )


@pytest.mark.parametrize(
    ("made", "right_call"),
    [
        (call("set_timer", purpose="tea", asked="in 20 minutes, tea", in_minutes=20), True),
        (call("set_timer", purpose="tea", in_minutes=20), False),
        (call("set_timer", purpose="tea", asked="Remind me of the tea.", in_minutes=20), False),
        (call("set_timer", purpose="tea", asked="In 20 minutes, tea!", in_minutes=25), False),
        (call("set_timer", asked="In 20 minutes, tea!", in_minutes=20), False),
        (call("list_timers", reason="20"), False),
    ],
    ids=["right", "its own idea", "words that nobody said", "another time", "without its purpose", "another function"],
)
def test_a_call_is_right_with_right_arguments_alone(made: Call, right_call: bool) -> None:
    task = Task("In 20 minutes, tea!", call="set_timer", arguments=r"in_minutes\W+20\b")
    assert Attempt(task, (made,), "Ok.", 0, Reply("Ok.")).called is right_call


def test_greeting_somebody_changes_no_memory() -> None:
    kept = call("working_context_append", content="Nora said good morning.")
    assert not Attempt(Task("Good morning!"), (kept,), "Hi!", 0, Reply("Hi!")).called
