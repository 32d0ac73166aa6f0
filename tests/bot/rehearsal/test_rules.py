"""What the rehearsal model understands, as tables."""

import json
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.rehearsal import rules
from bot.rehearsal.policy import answer
from bot.rehearsal.reminding import request_in
from bot.rehearsal.view import Event, View, hits_of, pages_of, view_of


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My name is Ada.", [("profile", "Name: Ada")]),
        ("I’m called Ada and I live in Porto", [("profile", "Name: Ada"), ("profile", "Lives in: Porto")]),
        ("I live in Lisbon now.", [("profile", "Lives in: Lisbon")]),
        ("I like green tea. I hate mushrooms!", [("preferences", "Likes: green tea"), ("preferences", "Dislikes: mushrooms")]),
        ("I work as a nurse, and I prefer mornings", [("profile", "Works as: a nurse"), ("preferences", "Prefers: mornings")]),
        ("I am 34 years old", [("profile", "Age: 34")]),
        ("I want to learn Dutch", [("goals", "Wants to: learn Dutch")]),
        ("my sister's name is Eva", [("key_facts", "Sister's name: Eva")]),
        ("My favourite colour is blue", [("preferences", "Favourite colour: blue")]),
        ("Remember that the key is under the pot.", [("key_facts", "the key is under the pot")]),
        ("Remember: my name is Ada", [("profile", "Name: Ada")]),
        ("Actually, my name is Bea", [("profile", "Name: Bea")]),
        ("Ich heiße Ada und ich wohne in Graz", [("profile", "Name: Ada"), ("profile", "Lives in: Graz")]),
        ("Merk dir, dass der Schlüssel oben liegt", [("key_facts", "der Schlüssel oben liegt")]),
        ("Je m'appelle Ada. J'habite à Lyon", [("profile", "Name: Ada"), ("profile", "Lives in: Lyon")]),
        ("Me llamo Ada y vivo en Cádiz", [("profile", "Name: Ada"), ("profile", "Lives in: Cádiz")]),
        ("I like tea. I like tea.", [("preferences", "Likes: tea")]),
        ("Hello there!", []),
        ("I have a question", []),
        ("Do I like tea?", []),
        ("What is my name", []),
        ("", []),
    ],
)
def test_facts_are_understood(text: str, facts: list[tuple[str, str]]) -> None:
    assert [(fact.section, fact.text) for fact in rules.facts_in(text)] == facts


@pytest.mark.parametrize(
    ("text", "swap"),
    [("not Porto but Lisbon", ("Porto", "Lisbon")), ("It's Lisbon, not Porto.", ("Porto", "Lisbon")), ("I am not sure", None)],
)
def test_swaps_are_understood(text: str, swap: tuple[str, str] | None) -> None:
    assert rules.swap_in(text) == swap


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Forget that I like tea.", "I like tea"),
        ("please forget my address", "address"),
        ("I forget things", None),
        ("Forget it", None),
    ],
)
def test_forgetting_is_understood(text: str, what: str | None) -> None:
    assert rules.forgetting_in(text) == what


NOON = datetime(2026, 11, 30, 12, 0)  # noqa: DTZ001 - a clock on the wall


@pytest.mark.parametrize(
    ("text", "purpose", "said"),
    [
        ("Remind me in 10 minutes to drink water", "drink water", timedelta(minutes=10)),
        ("please remind me to call Eva in 2 hours.", "call Eva", timedelta(hours=2)),
        ("remind me in half an hour to stretch", "stretch", timedelta(minutes=30)),
        ("remind me in 20 seconds to blink", "blink", timedelta(seconds=20)),
        ("remind me tomorrow at 8 to water the plants", "water the plants", "2026-12-01 08:00"),
        ("Remind me every day at 9 to take my pills", "take my pills", "2026-12-01 09:00 day"),
        ("for 5 pm: tea", "tea", "2026-11-30 17:00"),
        ("remind me for 5 pm: tea", "tea", "2026-11-30 17:00"),
        ("set a timer for 5 pm: tea", "tea", "2026-11-30 17:00"),
        ("Erinnere mich in 10 Minuten an den Tee", "Tee", timedelta(minutes=10)),
        ("Erinnere mich jeden Werktag um 8 an die Tabletten", "Tabletten", "2026-12-01 08:00 FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("Rappelle-moi demain à 8h d'appeler Eva", "appeler Eva", "2026-12-01 08:00"),
        ("Recuérdame mañana a las 8 regar las plantas", "regar las plantas", "2026-12-01 08:00"),
        ("Ricordami tra 10 minuti di chiamare Eva", "chiamare Eva", timedelta(minutes=10)),
        ("Lembra-me amanhã às 8 de ligar à Eva", "ligar à Eva", "2026-12-01 08:00"),
        ("remind me of the laundry", "the laundry", None),
    ],
)
def test_reminders_are_understood(text: str, purpose: str, said: timedelta | str | None) -> None:
    request = request_in(text, NOON)
    assert request is not None
    assert request.purpose == purpose
    when = request.when
    if when is None:
        assert said is None
    else:
        assert (when.span or f"{when.wall:%Y-%m-%d %H:%M} {when.every}".strip()) == said


@pytest.mark.parametrize(
    "text", ["I have read that at 5", "for the record: hello", "What reminds you of summer?", "Please don't remind me of it at 5"]
)
def test_what_asks_for_no_reminder_is_none(text: str) -> None:
    assert request_in(text, NOON) is None


@pytest.mark.parametrize(
    ("question", "texts", "answer"),
    [
        ("What is my name?", ["Sister's name: Eva", "Name: Ada"], "Name: Ada"),
        ("What is my sister's name?", ["Sister's name: Eva", "Name: Ada"], "Sister's name: Eva"),
        ("Where do I live?", ["Likes: Porto", "Lives in: Graz"], "Lives in: Graz"),
        ("Wie heiße ich?", ["Name: Ada"], "Name: Ada"),
        ("¿Dónde vivo?", ["Lives in: Cádiz"], "Lives in: Cádiz"),
        ("Who am I?", ["Name: Ada"], "Name: Ada"),
        ("What is my shoe size?", ["Name: Ada"], None),
        ("What?", ["Name: Ada"], None),
    ],
)
def test_the_best_entry_answers(question: str, texts: list[str], answer: str | None) -> None:
    assert rules.best(question, texts) == answer


@pytest.mark.parametrize(
    ("text", "language"),
    [("ich heiße Ada und wohne in Graz", "de"), ("où est mon chat", "fr"), ("me llamo Ada", "es"), ("Hi", "en")],
)
def test_languages_are_told_apart(text: str, language: str) -> None:
    assert rules.language_of(text) == language
    assert "{" not in rules.phrase(language, "noted", "x")


def test_a_summary_keeps_facts_within_the_words() -> None:
    texts = ["Hello. How are you?", "Nice weather today", "My name is Ada. I live in Porto.", "ok then"]
    made = rules.summary(texts, 8)
    assert made == "My name is Ada. I live in Porto."
    assert rules.summary(texts, 8) == made
    assert len(rules.summary([f"Fact number {n} is {n}." for n in range(300)], 100).split()) <= 100
    assert rules.summary([], 10) == ""


@given(st.text(), st.integers(1, 50))
def test_no_text_breaks_a_rule(text: str, limit: int) -> None:
    for rule in (
        rules.facts_in,
        rules.swap_in,
        rules.forgetting_in,
        rules.note_in,
        lambda text: request_in(text, NOON),
        rules.question_in,
        rules.words,
    ):
        rule(text)
    assert len(rules.summary([text], limit).split()) <= limit
    answer(View(functions={"send_message": {}}, events=(Event("user_message", text),)))


PROMPT = """# Memory
- **Working context** (below)
## persona (yours)
- kind
## key_facts
- Cat: Momo
## goals
- Sleep"""


def test_a_request_is_read() -> None:
    request: dict[str, object] = {
        "messages": [
            {"role": "system", "content": PROMPT},
            user("hello"),
            {"role": "assistant", "content": "Hi."},
            user("What is it?"),
            {"role": "assistant", "content": None, "tool_calls": [wire("a", "recall_storage_search", query="it", page=2)]},
            {"role": "tool", "tool_call_id": "a", "content": "No results found."},
            {"role": "user", "content": "Status: it is noon."},
        ],
        "tools": [{"type": "function", "function": {"name": "send_message", "parameters": {"properties": {"text": {}}}}}],
    }
    view = view_of(request)
    assert view.entries == ("Cat: Momo", "Sleep")
    assert view.heard == ("hello",)
    assert view.message == "What is it?"
    assert [(one.function, one.arguments["page"], one.text) for one in view.results] == [
        ("recall_storage_search", 2, "No results found.")
    ]
    assert view.spoken
    assert list(view.functions) == ["send_message"]
    assert view_of({**request, "tool_choice": "none"}).functions == {}


def test_a_turn_ends_with_calls_that_do_not_go_on() -> None:
    messages = [
        user("I like tea"),
        {"role": "assistant", "content": "Noted.", "tool_calls": [wire("a", "working_context_append", content="Likes: tea")]},
        {"role": "tool", "tool_call_id": "a", "content": "Added."},
        user("And cake?"),
    ]
    view = view_of({"messages": messages})
    assert (view.message, view.results, view.heard) == ("And cake?", (), ("I like tea",))
    assert [one.function for one in view.earlier] == ["working_context_append"]


def test_results_are_read() -> None:
    hit = '{"time": "Mon", "from": "Ada", "text": "I like tea"}'
    text = f"Showing 2 of 12 results (page 2/6); data:\n{hit}\n- 2026-11-30 08:00: plain line\nMore on page 3."
    assert pages_of(text) == (2, 6)
    assert [(hit.time, hit.speaker, hit.text) for hit in hits_of(text)] == [
        ("Mon", "Ada", "I like tea"),
        ("2026-11-30 08:00", "", "2026-11-30 08:00: plain line"),
    ]
    assert pages_of("No results found.") == (1, 1)


def test_only_what_people_told_is_an_answer() -> None:
    told = [("you", "Your name is Zed"), ("Ada", "What is my name?"), ("Ada", "My name is Ada")]
    hits = "\n".join(json.dumps({"time": "Mon", "from": speaker, "text": text}) for speaker, text in told)
    messages: list[dict[str, object]] = [
        user("What is my name?"),
        {"role": "assistant", "content": None, "tool_calls": [wire("a", "recall_storage_search", query="name", page=1)]},
        {"role": "tool", "tool_call_id": "a", "content": f"Showing 3 of 3 results (page 1/1):\n{hits}"},
    ]
    tools = [{"type": "function", "function": {"name": "recall_storage_search", "parameters": {"properties": {"query": {}}}}}]
    assert answer(view_of({"messages": messages, "tools": tools})).text.endswith("You told me on Mon: “My name is Ada”")
    only_you = [*messages[:2], {**messages[2], "content": hits.splitlines()[0]}]
    assert "Zed" not in answer(view_of({"messages": only_you, "tools": tools})).text


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": json.dumps({"from": "Ada", "message": text})}


def wire(call_id: str, name: str, /, **arguments: object) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
