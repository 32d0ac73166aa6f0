"""Odd values from models, terminals and files: each once broke a turn, a chat or a start."""

import pytest

from adapters.base import Outgoing, Person
from adapters.console import ConsoleAdapter
from bot.functions import BY_NAME
from bot.model.calls import CallFault, parse_arguments
from bot.model.client import ModelClient
from bot.model.margin import Margin
from bot.model.replies import usage_of
from memory.main_context import render
from tests.servers.model import Raw, ScriptedModel, reply


@pytest.mark.parametrize("depth", [300, 500, 800, 950])
def test_deeply_nested_arguments_are_a_fault_of_the_call(depth: int) -> None:
    """json.loads takes what clean_json / pydantic then recurse over: RecursionError broke the whole turn, five times over."""
    raw = '{"text": ' + "[" * depth + "]" * depth + "}"
    assert isinstance(parse_arguments(raw, BY_NAME["send_message"].schema), CallFault)


def test_absurd_usage_numbers_do_not_reach_the_database() -> None:
    """Columns are int4: 10**12 broke every step, 5 attempts, then a dead letter."""
    usage = usage_of({"prompt_tokens": 10**12, "completion_tokens": 10**30})
    assert max(usage.prompt_tokens, usage.completion_tokens) < 2**31


async def test_the_reported_model_name_is_clean_and_short() -> None:
    body = '{"model":"a\\u0000b\\ud800' + "x" * 10_000 + '","choices":[{"message":{"content":"ok"}}]}'
    async with ScriptedModel([Raw(body)]) as model, ModelClient(model.base_url, "k") as client:
        got = await client.complete("m", [{"role": "user", "content": "hi"}], max_tokens=5)
    assert "\x00" not in got.model
    assert len(got.model) <= 200
    got.model.encode()


def test_one_absurd_report_does_not_move_the_margin() -> None:
    """A ratio beyond MOST is 'not about our count' (module docstring) and yet was taken over as MOST, at once."""
    margin = Margin()
    margin.learn(4000, 400_000)
    assert margin.factor < 1.1


async def test_a_call_made_twice_for_length_reports_one_prompt_to_learn_from() -> None:
    """usage of both calls is added up, and the agent takes prompt_tokens as the size of one prompt: the margin became 2."""
    script = [reply(None, finish="length", prompt_tokens=1000), reply("ok", prompt_tokens=1000)]
    async with ScriptedModel(script) as model, ModelClient(model.base_url, "k") as client:
        got = await client.complete("m", [{"role": "user", "content": "hi"}], max_tokens=5)
    margin = Margin()
    margin.learn(1000, getattr(got, "prompt_seen", 0))  # whatever the agent learns from
    assert margin.factor < 1.1


def test_giant_arguments_are_shown_shortened() -> None:
    """`main_context._arguments` exists and is called by nobody: one 1 MB call pushed the person's question out of the prompt."""
    from datetime import UTC, datetime

    from memory.messages import Message

    call = {"id": "c", "name": "archival_storage_insert", "arguments": '{"content": "' + "x" * 1_000_000 + '"}'}
    message = Message(1, 1, "assistant", "call", "", "", "", (call,), None, "direct", datetime.now(UTC))
    shown = render(message, UTC, "direct message", giant=5000)
    assert len(str(shown)) < 20_000


def test_calls_in_text_is_not_quadratic_in_brackets() -> None:
    import time

    from bot.model.call_text import calls_in_text

    started = time.perf_counter()
    calls_in_text("send_message " + "[" * 32_000, frozenset(BY_NAME))
    assert time.perf_counter() - started < 1.0


class _Closed:
    def write(self, _: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        pass


async def test_a_reply_that_nobody_reads_is_due_at_the_next_start() -> None:
    """TryLater(3600) is stored as not_before: the next start shows nothing for an hour, and a pipe waits ten minutes before it reads."""
    from adapters.base import TryLater

    async def settled() -> None: ...

    console = ConsoleAdapter(Person("console", "", "a", "a"), "a", name="M", settled=settled, lines=None, out=_Closed())  # type: ignore[arg-type]
    with pytest.raises(TryLater) as later:
        await console.send(Outgoing(1, "a", "hello", None))
    assert later.value.seconds <= 5


class _Ascii:
    def write(self, text: str) -> int:
        text.encode("ascii")
        return len(text)

    def flush(self) -> None:
        pass


async def test_a_terminal_without_utf8_gets_a_replacement_not_silence() -> None:
    """UnicodeEncodeError is a ValueError: it was taken for a closed terminal."""

    async def settled() -> None: ...

    console = ConsoleAdapter(Person("console", "", "a", "a"), "a", name="M", settled=settled, lines=None, out=_Ascii())  # type: ignore[arg-type]
    assert await console.send(Outgoing(1, "a", "naïve ☕", None))


def test_leases_of_odd_shape_count_as_none(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from bot.embedded.lease import living

    for odd in (
        '{"leases":[1]}',
        '{"leases":[{"token":"a"}]}',
        '{"leases":[{"token":"a","pid":"x","started":1}]}',
        '{"leases":[{"token":"a","pid":-1,"started":1}]}',
    ):
        (tmp_path / "leases.json").write_text(odd)
        assert living(tmp_path / "leases.json") == []
