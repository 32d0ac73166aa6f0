"""What is evicted: the oldest whole exchanges, never a call apart from its result, and no more than needed."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memory.fifo_queue import answering, exchange_starts, plan_eviction, shorten, thresholds
from memory.messages import Kind, Message, Role


def message(role: Role, kind: Kind, position: int = 0) -> Message:
    return Message(position, position, role, kind, "text", "", "", (), None, "direct", datetime(2026, 1, 1, tzinfo=UTC))


SHAPES: list[list[tuple[Role, Kind]]] = [
    [("user", "message"), ("assistant", "message")],
    [
        ("user", "message"),
        ("user", "message"),
        ("assistant", "call"),
        ("tool", "result"),
        ("tool", "result"),
        ("assistant", "message"),
    ],
    [("user", "quote"), ("user", "message"), ("user", "alert"), ("assistant", "call"), ("tool", "result"), ("user", "alert")],
    [("user", "event"), ("assistant", "monologue")],
    [("user", "message")],
]


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[Message], list[int]]:
    shapes = draw(st.lists(st.sampled_from(SHAPES), max_size=12))
    flat = [pair for shape in shapes for pair in shape]
    made = [message(role, kind, number) for number, (role, kind) in enumerate(flat)]
    return made, draw(st.lists(st.integers(1, 900), min_size=len(made), max_size=len(made)))


@given(queues(), st.integers(0, 4000))
def test_eviction_takes_the_oldest_whole_exchanges_and_never_what_is_being_answered(
    queue: tuple[list[Message], list[int]], target: int
) -> None:
    messages, tokens = queue
    evicted = plan_eviction(messages, tokens, target)
    starts = exchange_starts(messages)
    assert evicted == 0 or evicted in starts
    if starts:
        assert evicted <= starts[-1], "what is being answered stays"
    if sum(tokens) <= target:
        assert evicted == 0
    elif sum(tokens[evicted:]) > target:
        assert evicted == (starts[-1] if starts else 0), "more stays than the target only when nothing else can go"
    else:
        earlier = [start for start in starts if 0 < start < evicted]
        assert all(sum(tokens[start:]) > target for start in earlier), "no more is evicted than needed"


def test_what_is_being_answered_is_the_run_of_events_of_the_last_exchange() -> None:
    queue = [message(role, kind) for shape in (SHAPES[0], SHAPES[2]) for role, kind in shape]
    assert answering(queue) == range(2, 4)
    assert answering([]) == range(0)


def test_an_alert_does_not_begin_an_exchange() -> None:
    queue = [message(role, kind) for role, kind in SHAPES[2]]
    assert exchange_starts(queue) == [0]


def test_thresholds_are_the_papers_shares_of_the_window() -> None:
    limits = thresholds(10_000, 2_000, warning=0.7, flush=1.0, evict=0.5)
    assert (limits.warn, limits.flush, limits.after_flush) == (7_000, 10_000, 4_000)


@given(st.text(max_size=3000), st.integers(10, 500))
def test_a_shortened_text_keeps_head_and_tail_and_says_what_is_missing(text: str, keep: int) -> None:
    made = shorten(text, keep=keep, pointer="see storage")
    if len(text) <= keep:
        assert made == text
    else:
        assert made.startswith(text[: keep * 7 // 10])
        assert "see storage" in made
        assert f"{len(text) - keep} of {len(text)}" in made
