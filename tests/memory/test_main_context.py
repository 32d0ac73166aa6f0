"""What stands around a message in a prompt: who, where and when once, and only what each message is."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from bot.model.messages import repair
from memory.main_context import MainContext, build, label
from memory.messages import Kind, Message, Role

AT = datetime(2026, 11, 30, 8, 1, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
STATUS = "status"


def message(
    kind: Kind = "message", content: str = "hi", *, role: Role = "user", at: datetime = AT, author: str = "Ada"
) -> Message:
    return Message(1, 1, role, kind, content, author, author, (), None, "direct", at)


def built(*queue: Message, zone: ZoneInfo = BERLIN) -> MainContext:
    return build(
        system=("s",),
        schemas=[],
        summary="",
        queue=queue,
        status=STATUS,
        zone=zone,
        place="direct message",
        giant=1000,
        count=len,
    )


def shown(*queue: Message, zone: ZoneInfo = BERLIN) -> list[dict[str, Any]]:
    said = [each["content"] for each in built(*queue, zone=zone).messages[1:] if each["role"] == "user"]
    assert said.count(STATUS) == 1, "one status"
    return [json.loads(each) for each in said if each != STATUS]


def test_the_first_message_says_who_where_and_when_and_the_next_only_its_words() -> None:
    first, second = shown(message(), message(content="there", at=AT + timedelta(minutes=8)))
    assert first == {"from": "Ada", "place": "direct message", "time": "Mon 2026-11-30 09:01 +01:00", "message": "hi"}
    assert second == {"message": "there"}


def test_a_time_is_said_every_ten_minutes_and_whole_on_another_day_or_clock() -> None:
    later = [AT + timedelta(minutes=n) for n in (9, 10, 60 * 14 + 58, 60 * 14 + 59)]
    times = [each.get("time") for each in shown(*(message(at=at) for at in (AT, *later)))]
    assert times == ["Mon 2026-11-30 09:01 +01:00", "09:10", None, "23:59", "Tue 2026-12-01 00:00 +01:00"]
    before = datetime(2026, 10, 25, 0, 55, tzinfo=UTC)  # five minutes before the clocks go back
    assert [each["time"][-12:] for each in shown(message(at=before), message(at=before + timedelta(minutes=5)))] == [
        "02:55 +02:00",
        "02:00 +01:00",
    ]


def test_who_speaks_is_said_again_after_somebody_else_and_under_a_new_name() -> None:
    said = shown(
        message(),
        message("quote", "no", author="Bob"),
        message(),
        message(author="Ada L."),
        message("alert"),
        message(author="Ada L."),
    )
    assert [(each.get("type"), each.get("from"), each.get("said_by")) for each in said] == [
        (None, "Ada", None),
        ("quote", None, "Bob"),
        (None, "Ada", None),
        (None, "Ada L.", None),
        ("alert", None, None),
        (None, "Ada L.", None),
    ]


def test_a_quote_of_a_namesake_does_not_speak_for_the_person() -> None:
    quoted, own = shown(message("quote", "no"), message())
    assert (quoted["type"], quoted["said_by"], own["from"]) == ("quote", "Ada", "Ada")


def test_a_timed_event_brings_its_lines_to_the_turn_it_wakes_and_then_only_says_what_it_was() -> None:
    event, answer = message("event", "Timer is due: tea\n- known: likes tea"), message(role="assistant", content="Tea?")
    assert shown(event)[-1]["message"] == "Timer is due: tea\n- known: likes tea"
    assert shown(event, answer)[-1]["message"] == "Timer is due: tea\n- known: likes tea", "through all passes of its turn"
    past, reply = shown(event, answer, message(content="Yes.\nPlease."))
    assert past["message"] == "Timer is due: tea"
    assert reply["message"] == "Yes.\nPlease."
    mine, _ = shown(message(content="Timer is due: tea\nkeep this line"), answer, message())
    assert mine["message"].endswith("keep this line"), "what only looks like an event is a message"


def test_the_word_that_means_the_agent_is_nobodys_name() -> None:
    assert [label(name) for name in ("You", " you\u200b", "Yousef", "Ada\n{}")] == ['"You"', '"you"', "Yousef", "Ada {}"]


SAID = st.tuples(
    st.sampled_from(["message", "quote", "event", "alert"]), st.text(max_size=30), st.text(max_size=8), st.integers(-30, 900)
)


@given(st.lists(SAID, max_size=8))
def test_each_message_is_one_object_with_its_own_words_and_stays_as_it_is_when_more_is_said(
    said: list[tuple[Kind, str, str, int]],
) -> None:
    queue: list[Message] = []
    before: list[dict[str, Any]] = []
    for kind, content, author, minutes in said:
        heard = message(
            kind,
            content.replace("\n", " "),
            author=author,
            at=(queue[-2].created_at if queue else AT) + timedelta(minutes=minutes),
        )
        queue += [heard, replace(message(role="assistant", content="ok"), created_at=heard.created_at)]
        now = shown(*queue)
        assert now[: len(before)] == before, "the prompt's beginning stays, for prompt caches"
        last = now[-1]
        assert last.get("type") == (None if kind == "message" else kind)
        assert last.get("text" if kind == "quote" else "message", "") == heard.content
        assert last.keys() <= {"type", "from", "place", "said_by", "note", "time", "text", "message"}
        before = now


STEP = st.sampled_from(["message", "event", "quote", "alert", "said", "say", "quiet", "search", "thought", "silence"])


def rows_of(steps: list[str]) -> list[Message]:
    """Rows as turns leave them: what a step made, each call with its result."""
    rows: list[Message] = []

    def calling(kind: Kind, content: str, *names: str) -> None:
        calls = tuple({"id": f"{len(rows)}.{n}", "name": name, "arguments": "{}"} for n, name in enumerate(names))
        rows.append(replace(message(kind, content, role="assistant"), calls=calls))
        rows.extend(replace(message("result", "found", role="tool"), call_id=one["id"]) for one in calls)

    for step in steps:
        match step:
            case "said":
                rows.append(message(role="assistant", content="ok"))
            case "say":
                calling("message", "ok", "send_message", "search")
            case "quiet":
                calling("call", "", "stay_silent")
            case "search":
                calling("call", "hm", "search", "search")
            case "thought":
                rows.append(message("monologue", "hm", role="assistant"))
            case "silence":
                pass
            case kind:
                rows.append(message(kind))  # type: ignore[arg-type]
    return rows


@given(st.lists(STEP, max_size=12))
def test_whatever_turns_left_behind_no_event_follows_a_result_and_what_was_said_stays(steps: list[str]) -> None:
    queue = rows_of(["message", *steps, "event"])
    context = built(*queue)
    sent = repair(context.messages)
    heads = [n for n, one in enumerate(sent) if one["role"] == "user" and str(one["content"]).startswith(STATUS)]
    assert heads == [len(sent) - 1], "the status heads the newest message"
    for before, one in itertools.pairwise(sent):
        assert not (before["role"] == "tool" and one["role"] not in ("tool", "assistant"))
        assert one["role"] != before["role"] or one["role"] == "tool"
    assert sum(str(one["content"]).count("ok") for one in sent) == sum(step in ("said", "say") for step in steps)
    assert not {"send_message", "stay_silent"} & {call["function"]["name"] for one in sent for call in one.get("tool_calls", ())}  # type: ignore[attr-defined]


def test_a_running_exchange_shows_its_calls_as_they_were_made() -> None:
    queue = rows_of(["message", "said", "message", "say", "alert"])
    sent = repair(built(*queue).messages)
    calls: list[dict[str, dict[str, str]]] = sent[-3]["tool_calls"]  # type: ignore[assignment]
    assert [one["function"]["name"] for one in calls] == ["send_message", "search"]
    assert [one["role"] for one in sent[-2:]] == ["tool", "tool"]
    assert str(sent[-1]["content"]).startswith("found\n\nNotice from the system"), "an alert stands in the last result"


def test_the_status_heads_the_newest_message_with_the_summary_and_what_was_never_answered() -> None:
    queue = [message(content="nobody asked you"), *rows_of(["quiet"]), message(content="hello")]
    sent = repair(replace(built(*queue), summed=({"role": "user", "content": "the summary"},)).messages)
    [_, newest] = sent
    assert [line[:2] for line in str(newest["content"]).split("\n")] == ["st", "th", '{"', '{"']
