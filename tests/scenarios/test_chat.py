"""A person at the terminal: real processes, the servers inside, the rehearsal model or a scripted one over HTTP."""

import asyncio
import json
import os
import re
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from redis import Redis

from tests.folders import data_folder
from tests.scenarios.terminal import environment, run, terminal
from tests.servers.model import Gate, Request, ScriptedModel, Status, reply, unused_port
from tests.waiting import stretched


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """One data folder for all tests here; each test is a person of its own."""
    with data_folder("chat") as data:
        yield data


async def test_is_remembered_after_leaving_and_coming_back(data: Path) -> None:
    code, out, err = await run(data, "chat", user="ada", given="My name is Ada Lovelace.\n/quit\nnever read\n")
    assert code == 0, err
    assert "rehearsal model" in out
    assert "never read" not in out

    code, out, err = await run(data, "chat", user="ada", given="What is my name?\n")
    assert code == 0, err
    assert "Ada Lovelace" in out

    code, out, err = await run(data, "chat", user="bob", given="What is my name?\n")
    assert code == 0, err
    assert "Ada" not in out


async def test_each_line_is_answered_before_the_next_is_read(data: Path) -> None:
    def echo(request: Request) -> object:
        return reply(f"answer {request.number}")

    async with ScriptedModel(policy=echo) as model:  # type: ignore[arg-type]
        code, out, err = await run(data, "chat", user="lines", given="one\n\n   \ntwo\r\nthree", **endpoint(model))
    assert code == 0, err
    assert out.split("\n") == ["answer 1", "answer 2", "answer 3", ""]
    assert len(model.requests) == 3


async def test_bad_bytes_and_giant_lines_are_messages_like_others(data: Path) -> None:
    given = "\udcff half \x00 <|endoftext|>\n" + "x" * 100_000 + "\nstill there?\n"
    async with ScriptedModel([reply("one"), reply("two"), reply("\x1b[2Jthree\x07")]) as model:
        code, out, err = await run(data, "chat", user="bytes", given=given, **endpoint(model))
    assert (code, out) == (0, "one\ntwo\nthree\n"), err
    heard = " ".join(model.requests[0].contents("user"))
    assert "half" in heard
    assert "\ufffd" in heard


async def test_the_configured_fallback_answers_while_the_model_is_away(data: Path) -> None:
    async with (
        ScriptedModel(policy=lambda request: Status(503)) as away,
        ScriptedModel(policy=lambda request: reply(f"by {request.model}")) as other,
    ):
        spare = {"KEEPSAKE__MODEL__FALLBACK": "spare", "KEEPSAKE__MODEL__FALLBACK_URL": other.base_url}
        code, out, err = await run(data, "chat", user="fallback", given="Hi\nAnd again\n", **endpoint(away), **spare)
    assert (code, out) == (0, "by spare\nby spare\n"), err


async def test_kill_in_the_middle_of_an_answer_loses_nothing(data: Path) -> None:
    gate = Gate()
    async with ScriptedModel([gate, reply("Here is your answer."), reply("And the next.")]) as model:
        async with terminal(data, "killed", **endpoint(model)) as chat:
            await chat.say("How are you?")
            await asyncio.wait_for(gate.reached.wait(), stretched(60))
            chat.kill()
            await chat.process.wait()
        code, out, err = await run(data, "chat", user="killed", given="Another question.\n", **endpoint(model))
    assert (code, out) == (0, "Here is your answer.\nAnd the next.\n"), err


async def test_terminated_in_the_middle_hands_the_turn_back(data: Path) -> None:
    gate = Gate()
    async with ScriptedModel([gate, reply("Here it is.")]) as model:
        async with terminal(data, "terminated", **endpoint(model)) as chat:
            await chat.say("How are you?")
            await asyncio.wait_for(gate.reached.wait(), stretched(60))
            chat.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(chat.process.wait(), stretched(60)) == 0
        code, out, err = await run(data, "chat", user="terminated", given="", **endpoint(model))
    assert (code, out) == (0, "Here it is.\n"), err


async def test_two_processes_at_once_share_the_servers(data: Path) -> None:
    async with terminal(data, "eve") as first, terminal(data, "mallory") as second:
        await first.say("My name is Eve.")
        await second.say("My name is Mallory.")
        await first.hear_until("Eve")
        await second.hear_until("Mallory")
        await first.leave()
        await second.say("What is my name?")
        assert "Mallory" in await second.hear_until("Name")
        await second.leave()
    assert "Eve" not in "".join(second.said)


async def test_a_second_terminal_of_one_person_is_another_conversation(data: Path) -> None:
    async with terminal(data, "twice") as first:
        await first.say("My name is Grace.")
        await first.hear_until("Grace")
        async with terminal(data, "twice") as second:
            await second.say("What is my name?")
            assert "Grace" in await second.hear_until("Name")
            await first.say("/status")
            await first.hear_until("database: well")
            await second.leave()
        await first.leave()


async def test_memory_commands(data: Path) -> None:
    async with terminal(data, "owner") as chat:
        await chat.say("/memory view")
        await chat.hear_until("I know nothing about you yet")
        await chat.say("My dog is called Biscuit.")
        await chat.hear_until("Biscuit")
        await chat.say("/memory view")
        shown = await chat.hear_until("  w")
        assert "Biscuit" in shown
        assert "direct message; m" in shown
        await chat.hear_until("Everything we said:")
        await chat.say("/memory search Biscuit")
        await chat.hear_until("Showing")
        found = await chat.hear_until("owner: My dog is called Biscuit.")
        message = re.match(r"\s*(m\d+)", found)[1]  # type: ignore[index]

        await chat.say("/memory export")
        files = [Path((await chat.hear_until(end)).strip()) for end in (".json", ".md")]
        assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
        assert "Biscuit" in json.dumps(json.loads(files[0].read_text())["working_context"])
        assert "Biscuit" in files[1].read_text()

        await chat.say(f"/memory forget {message}")
        assert "1 entry of the working context" in await chat.hear_until("Forgotten")
        await chat.say("/memory view")
        await chat.hear_until("Working context: nothing yet.")
        await chat.say("/memory forget everything")
        await chat.hear_until("everything yes")
        await chat.say("/memory forget everything yes")
        assert "found nothing left" in await chat.hear_until("Everything is erased")
        await chat.say("/memory view")
        await chat.hear_until("I know nothing about you yet")
        await chat.leave()


async def test_help_stop_retry_fresh_and_unknown(data: Path) -> None:
    async with ScriptedModel([reply("First."), reply("Second."), reply("Third.")]) as model:  # noqa: SIM117 - the second uses the first
        async with terminal(data, "commander", **endpoint(model)) as chat:
            await chat.say("/help")
            await chat.hear_until("/quit")
            await chat.say("/nonsense")
            await chat.hear_until("There is no command /nonsense")
            await chat.say("/stop")
            await chat.hear_until("Nothing is running.")
            await chat.say("Tell me.")
            assert await chat.hear_until(".") == "First."
            await chat.say("/retry")
            assert await chat.hear_until(".") == "Second."
            await chat.say("/fresh")
            await chat.hear_until("fresh conversation")
            await chat.say("And now?")
            assert await chat.hear_until(".") == "Third."
            await chat.leave()
    assert "Tell me." not in json.dumps(model.requests[-1].messages)


async def test_the_rehearsal_model_answers_again(data: Path) -> None:
    async with terminal(data, "again") as chat:
        await chat.say("My name is Grace.")
        await chat.hear_until("Name: Grace")
        await chat.say("/retry")
        again = await chat.hear()
        assert "Sorry" not in again
        assert "Grace" in again
        await chat.leave()


async def test_the_rehearsal_model_sets_reminders_on_the_clock_and_asks_for_what_it_needs(data: Path) -> None:
    said = "remind me tomorrow at 8 to water the plants\nerinnere mich morgen um 9 an die Wäsche\nremind me to call Mum\n"
    code, out, err = await run(data, "chat", user="punctual", given=said, TZ="Europe/Berlin")
    assert code == 0, err
    assert "Reminder: water the plants, tomorrow 08:00" in out
    assert re.search("(Reminder|Erinnerung): Wäsche, (tomorrow|morgen) 09:00", out)
    assert "When? Say it in one line" in out
    assert "No reminder is set. I need to know when" in out
    assert "Sorry" not in out


async def test_a_dead_endpoint_and_a_refused_key_are_told_at_the_start(data: Path) -> None:
    port = unused_port()
    dead = {"KEEPSAKE__MODEL__BASE_URL": f"http://ada:hunter2@127.0.0.1:{port}/v1", "KEEPSAKE__MODEL__CHAT": "scripted"}
    assert "hunter2" not in (found := await told_at_the_start(data, dead))
    assert f"Start the endpoint at http://127.0.0.1:{port}/v1, or correct model.base_url. `bot doctor`" in found
    async with ScriptedModel(models=Status(401, "invalid_api_key")) as model:
        key = {"KEEPSAKE__MODEL__API_KEY_ENV": "SOME_KEY", "SOME_KEY": "wrong-key-5"}
        found = await told_at_the_start(data, endpoint(model) | key)
    assert "status 401, invalid_api_key" in found
    assert "environment variable SOME_KEY. `bot doctor`" in found
    assert "wrong-key-5" not in found


async def told_at_the_start(data: Path, settings: dict[str, str]) -> str:
    """What a chat says about its endpoint before anybody has said anything."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        "chat",
        cwd=data.parent,
        env=environment(data, "start", settings),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(stretched(60)):
            while not (line := (await process.stderr.readline()).decode()).startswith("The model does not answer"):
                assert line, "said nothing of it"
            return line
    finally:
        process.terminate()
        await process.communicate()


async def test_a_closed_terminal_ends_the_bot_and_the_servers() -> None:
    with tempfile.TemporaryDirectory(prefix="ks-hangup-") as top:
        data = Path(top) / "data"
        os.chmod(top, 0o711)
        async with terminal(data, "hangup") as chat:
            await chat.say("My name is Ada.")
            await chat.hear_until("Ada")
            chat.process.send_signal(signal.SIGHUP)
            assert await asyncio.wait_for(chat.process.wait(), stretched(60)) == 0
        assert not (data / "postgres" / "postmaster.pid").exists()


async def test_no_message_text_in_any_log(data: Path) -> None:
    canary = "CANARY-7f3a"
    code, _, err = await run(data, "chat", user="canary", given=f"My secret is {canary}.\n/memory search {canary}\n")
    assert code == 0
    assert canary not in err
    logs = logs_in(data)
    assert logs
    assert canary.encode() not in b"".join(logs)


def endpoint(model: ScriptedModel) -> dict[str, str]:
    """The settings of a chat with a scripted model."""
    return {"KEEPSAKE__MODEL__BASE_URL": model.base_url, "KEEPSAKE__MODEL__CHAT": "scripted", "KEEPSAKE__MODEL__SIZE": "large"}


async def test_the_first_start_tries_the_model_and_a_small_one_gets_its_prompts(data: Path) -> None:
    async with ScriptedModel(policy=lambda _: reply("Hello there.")) as model:
        chosen = {name: value for name, value in endpoint(model).items() if not name.endswith("SIZE")}
        code, out, err = await run(data, "chat", user="tiny", given="Hi\n", **chosen)
        assert code == 0, err
        assert "Hello there." in out
        assert "scripted gets the prompts for small models; model.size overrides that." in err
        tried, sent = model.requests[0], model.requests[-1]
        assert "archival_storage_insert" in tried.functions
        assert "archival_storage_insert" not in sent.functions
        assert len(sent.contents("system")[0]) < 0.7 * len(tried.contents("system")[0])
        before = len(model.requests)
        code, _, err = await run(data, "chat", user="tiny", given="Hi again\n", **chosen)
        assert code == 0, err
        assert len(model.requests) == before + 1, "tried once, and kept"
        assert "archival_storage_insert" not in model.requests[-1].functions


def logs_in(data: Path) -> list[bytes]:
    """The contents of every log in the data folder."""
    return [file.read_bytes() for file in data.rglob("*") if file.is_file() and (file.suffix == ".log" or "logs" in file.parts)]


async def test_the_database_inside_that_died_is_started_again_under_the_chat(data: Path) -> None:
    async with terminal(data, "phoenix") as chat:
        await chat.say("My name is Fenella.")
        await chat.hear_until("Fenella")
        postmaster = int((data / "postgres" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGKILL)
        await chat.say("What is my name?")
        await chat.hear_until("Fenella")
        await chat.leave()


async def test_redis_frozen_killed_and_emptied_changes_no_answer(data: Path) -> None:
    async with terminal(data, "rehana") as chat:
        await chat.say("My name is Rehana.")
        await chat.hear_until("Rehana")
        server = psutil.Process(int((data / "redis" / "redis.pid").read_text()))

        async def told_and_asked(animal: str, name: str) -> None:
            await chat.say(f"My {animal} is called {name}.")
            assert await chat.hear_until(name) == f"I will remember: {animal.capitalize()}: called {name}."
            await chat.say(f"What is my {animal} called?")
            assert await chat.hear_until(name) == f"As far as I know: {animal.capitalize()}: called {name}."

        await told_and_asked("dog", "Rex")
        with Redis(unix_socket_path=str(data / "run" / "redis.sock")) as cache:
            assert cache.dbsize()
            cache.flushall()
        await told_and_asked("cat", "Tom")
        server.suspend()
        await told_and_asked("parrot", "Polly")
        server.resume()
        await told_and_asked("horse", "Bess")
        server.kill()
        await told_and_asked("rabbit", "Flo")
        await chat.say("What is my dog called?")
        assert await chat.hear_until("Rex") == "As far as I know: Dog: called Rex."
        assert await chat.leave() == ""
