"""What the rehearsal model answers to a request: text, calls, or both. Pure and deterministic."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.rehearsal import rules
from bot.rehearsal.reminding import request_in
from bot.rehearsal.rules import phrase
from bot.rehearsal.view import Event, Hit, Result, View, hits_of, pages_of

PAGES = 4
"""How many pages of one search it looks through."""

Asked = tuple[str, dict[str, object]]
"""A function's name and arguments."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes back; text is the reply where no call goes on."""

    text: str = ""
    calls: tuple[Asked, ...] = ()


def answer(view: View) -> Answer:
    """The reply to a request: the whole rehearsal model."""
    made = _decided(view)
    known = tuple((name, _fitting(view, name, values)) for name, values in made.calls if name in view.functions)
    if len(known) < len(made.calls) and not known and not made.text:
        made = replace(made, text=_without(view))
    if view.must_call and not known and view.functions:
        known = (_any_call(view, made.text),)
    goes_on = any(values.get("request_heartbeat") for _, values in known)
    text = made.text
    if text and not goes_on and not view.spoken and view.message and not _summarising(view):
        who = phrase(rules.language_of(view.message), "who")
        text = text if who in text else f"{who}\n\n{text}"
    return Answer(text, known)


def _decided(view: View) -> Answer:
    if _summarising(view):
        return Answer(_summary(view))
    pressed = any(_is_pressure(event) for event in view.events)
    saved = any(result.function == "archival_storage_insert" for result in view.results)
    if pressed and not saved and (made := _saved(view)):
        return made
    if not view.message:
        return _unasked(view, pressed)
    if (chained := _chained(view)) is not None:
        return chained
    results = [result for result in view.results if not (pressed and result.function == "archival_storage_insert")]
    return _follow(view, results) if results else _first(view)


# --- without a message from a person ----------------------------------------------------------------


def _summarising(view: View) -> bool:
    return not view.functions and bool(re.search(r"summar", view.system[:2000], re.I)) and not view.entries


def _summary(view: View) -> str:
    limit = re.search(r"(\d+) words", view.system)
    texts = []
    for line in "\n".join((*view.heard, *(event.text for event in view.events))).splitlines():
        try:
            value = json.loads(line) if line.startswith("{") else None
        except ValueError:
            value = None
        if isinstance(value, dict):
            texts += [str(value.get("text") or value.get("message") or "")] if value.get("said_by") != "you" else []
        elif not re.fullmatch(r"\s*(?:\(none\)|[\w ]{1,40}:)\s*", line):
            texts.append(line)
    return rules.summary(texts, int(limit[1]) if limit else 100) or "Nothing of note was said."


def _is_pressure(event: Event) -> bool:
    return event.kind == "alert" and "memory pressure" in event.text.lower()


def _saved(view: View) -> Answer | None:
    """Archival inserts of what the visible messages tell, but for what the working context holds."""
    told = [fact.text for text in (*view.heard, view.message) for fact in rules.facts_in(text)]
    new = [text for text in dict.fromkeys(told) if text not in view.entries]
    others = [
        one
        for text in view.heard
        for one in rules.sentences(text)
        if re.search(r"\d|\s[A-Z]\w", one) and not rules.is_question(one)
    ]
    content = "; ".join(dict.fromkeys(new + others))[:1500] if new else "; ".join(dict.fromkeys(others))[:1500]
    if not content:
        return None
    call: Asked = ("archival_storage_insert", {"content": f"The person said: {content}", "tags": ["conversation"]})
    return Answer(calls=(_because(call, "memory pressure", goes_on=bool(view.message)),))


def _unasked(view: View, pressed: bool) -> Answer:
    read = [found[1] for event in view.events if (found := re.match(r"Upload finished: (.*), now in", event.text))]
    if read and not view.results:
        return Answer(f"I have read {', '.join(read)}. Ask me what is in it.")
    timed = [
        event
        for event in view.events
        if event.kind in ("timer", "event") and re.search(r"timer|remind|worth taking up", f"{event.kind} {event.text}", re.I)
    ]
    if timed and not view.results and "Worth taking up" in timed[-1].text:
        return Answer(calls=(_opened(timed[-1].text),))
    if timed and not view.results:
        purpose = re.sub(r"^(?:timer|reminder)\b[^:]*:\s*", "", timed[-1].text.partition("\n")[0], flags=re.I)
        return Answer(calls=(_because(("send_message", {"text": f"A reminder: {purpose}"}), "a timer fired"),))
    if view.results or pressed or not view.events:
        return Answer("" if view.results or pressed else phrase("en", "small"))
    return Answer(calls=(_because(("stay_silent", {}), "nobody asked"),))


def _opened(event: str) -> Asked:
    """Takes up the first thing worth it that no earlier opener said."""
    earlier = " ".join(re.findall(r"^- earlier opener[^:]*:[^:]*:[^:]*: (.*)$", event, re.M))
    worth = re.findall(r"^- (?:near date [^:]*|unfinished|known): (.*)$", event, re.M)
    fresh = next((text for text in worth if text.rstrip(".") not in earlier), None)
    if fresh is None:
        return _because(("stay_silent", {}), "nothing new is worth it")
    return _because(
        ("send_message", {"text": f"I was thinking of what you told me: {fresh.rstrip('.')}. How is it going?"}),
        "worth taking up",
    )


def _chained(view: View) -> Answer | None:
    """Follows a key to its value, which may name another key, by a function that takes a `key`."""
    function = next((name for name, kinds in view.functions.items() if "key" in kinds), None)
    if function is None:
        return None
    last = view.results[-1].text if view.results else view.message
    key = re.search(r"\bkey:? [`\"']?(\w+)", last)
    if key and len(view.results) < 8:
        return Answer(calls=(_because((function, {"key": key[1]}), "following the key", goes_on=True),))
    return Answer(last.strip()) if view.results else None


# --- the first pass ---------------------------------------------------------------------------------


def _first(view: View) -> Answer:
    message = view.message
    language = rules.language_of(message)
    if rules.asks_who_i_am(message):
        return Answer(phrase(language, "who"))
    if (named := re.search(r"\bcall (?:the )?(?:function )?[`\"']?(\w+)", message, re.I)) and named[1] in view.functions:
        return Answer(calls=(_any_call(view, message, named[1]),))
    made = (
        _reminder(view, message)
        or _forgetting(view, message)
        or _note(message)
        or _page_on(view, message)
        or _correction(view, message)
    )
    if made is not None:
        return made
    facts = rules.facts_in(message)
    writes = [_write(view, fact) for fact in facts]
    question = rules.question_in(message)
    noted = _noted(view, message)
    if question is None:
        return Answer(noted, tuple(writes)) if writes else Answer(phrase(language, "small"))
    seen = rules.best(question, (*view.entries, *(fact.text for fact in facts))) or _heard(view, question)
    if seen is not None:
        return Answer(" ".join(filter(None, (noted, phrase(rules.language_of(question), "known", seen)))), tuple(writes))
    return Answer(calls=(*writes, _search("recall_storage_search", question, 1)))


def _heard(view: View, question: str) -> str | None:
    said = [one for text in view.heard for one in rules.sentences(text) if not rules.is_question(one)]
    return rules.best(question, said)


def _noted(view: View, message: str) -> str:
    facts = rules.facts_in(message)
    if not facts:
        return ""
    if "working_context_append" not in view.functions:
        return phrase(facts[0].language, "small")
    replaced = any(_older(view, fact) for fact in facts)
    return phrase(facts[0].language, "changed" if replaced else "noted", "; ".join(fact.text for fact in facts))


def _older(view: View, fact: rules.Fact) -> str | None:
    """The entry that a single-valued fact takes the place of."""
    if not fact.single:
        return None
    return next(
        (one for one in view.entries if one.casefold().startswith(f"{fact.label.casefold()}:") and one != fact.text), None
    )


def _write(view: View, fact: rules.Fact) -> Asked:
    older = _older(view, fact)
    if older is not None:
        return _because(("working_context_replace", {"old": older, "new": fact.text}), "the person corrected it")
    return _because(("working_context_append", {"section": fact.section, "content": fact.text}), "the person told it")


def _reminder(view: View, message: str) -> Answer | None:
    language = rules.language_of(message)
    request = request_in(message, view.now)
    if request is None:
        if re.search(r"\b(?:list|show|what|which)\b.{0,20}\b(?:timers|reminders)\b", message, re.I):
            return Answer(calls=(_because(("list_timers", {}), "asked for", goes_on=True),))
        cancel = re.search(r"\bcancel (?:the )?(?:timer|reminder) (?:no\.? ?|number |#)?(\d+)", message, re.I)
        return Answer("Cancelled.", (_because(("cancel_timer", {"timer": int(cancel[1])}), "asked for"),)) if cancel else None
    when = request.when
    if when is None:
        return Answer(phrase(language, "when"))
    values: dict[str, object] = {"purpose": request.purpose, "asked": message, "every": when.every}
    if when.span is not None:
        values["in_minutes"] = round(when.span.total_seconds() / 60, 4)
    elif not view.zone_known:
        return Answer(phrase(language, "zone"))
    elif when.wall is not None:
        values["at"] = when.wall.isoformat(timespec="minutes")
    return Answer(phrase(language, "timer", request.purpose), (_because(("set_timer", values), "asked for"),))


def _forgetting(view: View, message: str) -> Answer | None:
    what = rules.forgetting_in(message)
    if what is None:
        return None
    fact = next(iter(rules.facts_in(what)), None)
    entry = rules.best(fact.text if fact else what, view.entries, least=0.5)
    if entry is None:
        return Answer(phrase("en", "nothing"))
    return Answer(phrase("en", "removed", entry), (_because(("working_context_remove", {"content": entry}), "asked to forget"),))


def _note(message: str) -> Answer | None:
    note = rules.note_in(message)
    if note is None:
        return None
    tags = [word for word in rules.words(note) if len(word) > 4][:3]
    call = _because(("archival_storage_insert", {"content": note, "tags": tags}), "a longer note")
    return Answer(phrase("en", "archived"), (call,))


def _page_on(view: View, message: str) -> Answer | None:
    if not rules.asks_next_page(message):
        return None
    last = next((one for one in reversed(view.earlier) if one.function.endswith("_search")), None)
    if last is None:
        return None
    page, pages = pages_of(last.text)
    if page >= pages:
        return Answer("That was the last page.")
    return Answer(calls=(_search(last.function, str(last.arguments.get("query", "")), page + 1),))


def _correction(view: View, message: str) -> Answer | None:
    swap = rules.swap_in(message)
    if swap is None:
        return None
    old, new = swap
    entry = next((one for one in view.entries if re.search(rf"\b{re.escape(old)}\b", one, re.I)), None)
    if entry is None:
        return None if rules.facts_in(message) else Answer(phrase("en", "nothing"))
    changed = re.sub(rf"\b{re.escape(old)}\b", lambda _: new, entry, flags=re.I)
    call = _because(("working_context_replace", {"old": entry, "new": changed}), "the person corrected it")
    return Answer(phrase("en", "changed", changed), (call,))


# --- the passes after -------------------------------------------------------------------------------


def _follow(view: View, results: Sequence[Result]) -> Answer:
    searches = [result for result in results if result.function.endswith("_search")]
    if searches:
        return _found(view, searches)
    if results[-1].function == "list_timers" and not results[-1].failed:
        return Answer(f"Your timers:\n{results[-1].text.strip()}")
    failed = [result for result in results if result.failed]
    if failed:
        content = failed[-1].arguments.get("content")
        if content and "already" in failed[-1].text:
            return Answer(phrase("en", "already", str(content)))
        if "paused memory" in failed[-1].text:
            return Answer(phrase(rules.language_of(view.message), "paused"))
        told = re.sub(r"^\W*error:?\s*", "", failed[-1].text.strip(), flags=re.I).splitlines()
        return Answer(phrase(rules.language_of(view.message), "failed", told[0][:300] if told else "?"))
    return Answer(_noted(view, view.message) or "Done.")


def _found(view: View, searches: Sequence[Result]) -> Answer:
    last = searches[-1]
    asked_on = rules.asks_next_page(view.message)
    question = (None if asked_on else rules.question_in(view.message)) or str(last.arguments.get("query", ""))
    language = rules.language_of(question)
    hits = [hit for hit in hits_of(last.text) if _tells(hit, view.message)]
    hit = _answering(question, hits, 0.6)
    if hit is not None:
        return Answer(_with_noted(view, phrase(language, "found", hit.text, hit.time or "?")))
    page, pages = pages_of(last.text)
    if asked_on:
        shown = "\n".join(f"- {hit.time}: {hit.text}" for hit in hits[:10])
        return Answer(f"Page {page} of {pages}:\n{shown or 'nothing'}")
    if not last.failed:
        if page < min(pages, PAGES):
            return Answer(calls=(_search(last.function, question, page + 1),))
        if last.function == "recall_storage_search" and "archival_storage_search" in view.functions:
            return Answer(calls=(_search("archival_storage_search", question, 1),))
    every = [hit for result in searches for hit in hits_of(result.text) if _tells(hit, view.message)]
    near = _answering(question, every, 0.34)
    return Answer(
        _with_noted(view, phrase(language, "closest", near.text, near.time or "?") if near else phrase(language, "unknown"))
    )


def _with_noted(view: View, text: str) -> str:
    return " ".join(filter(None, (_noted(view, view.message), text)))


def _tells(hit: Hit, message: str) -> bool:
    """Whether a hit can hold an answer: no question, nothing the assistant said, not the message itself."""
    return hit.speaker not in ("you", "assistant") and not rules.is_question(hit.text) and hit.text.strip() not in message


def _answering(question: str, hits: Sequence[Hit], least: float) -> Hit | None:
    text = rules.best(question, [hit.text for hit in hits], least=least)
    return next((hit for hit in hits if hit.text == text), None)


def _without(view: View) -> str:
    """What is said where the call that was meant is not allowed."""
    question = rules.question_in(view.message)
    searches = [result for result in view.results if result.function.endswith("_search")]
    every = [hit for result in searches for hit in hits_of(result.text) if _tells(hit, view.message)]
    hit = _answering(question, every, 0.34) if question else None
    language = rules.language_of(view.message)
    if hit is not None:
        return phrase(language, "found", hit.text, hit.time or "?")
    return phrase(language, "unknown" if question else "small") if view.message else ""


# --- calls ------------------------------------------------------------------------------------------


def _because(call: Asked, reason: str, *, goes_on: bool = False) -> Asked:
    return call[0], {**call[1], "request_heartbeat": goes_on, "reason": reason}


def _search(function: str, question: str, page: int) -> Asked:
    query = " ".join(rules.words(question)) or question
    return _because((function, {"query": query, "page": page}), "looking for an answer", goes_on=True)


def _fitting(view: View, name: str, values: dict[str, object]) -> dict[str, object]:
    """The arguments that the function really has."""
    return {key: value for key, value in values.items() if key in view.functions[name]}


def _any_call(view: View, text: str, name: str | None = None) -> Asked:
    """A call that somebody insists on, with plausible arguments: numbers and `name=value` from the text where it has them."""
    name = name or ("send_message" if "send_message" in view.functions else next(iter(view.functions)))
    values: dict[str, object] = {}
    numbers = re.findall(r"-?\d+", text)
    for key, kind in view.functions[name].items():
        given = re.search(rf"\b{re.escape(key)}\b\s*(?:=|:|to|is)?\s*[\"'`]?([\w.-]+)", text)
        if key == "request_heartbeat" or "default" in kind and not given:
            continue
        choices = kind.get("enum")
        if isinstance(choices, list):
            values[key] = given[1] if given and given[1] in choices else choices[0]
        elif kind.get("type") in ("integer", "number"):
            number = given[1] if given and given[1].lstrip("-").isdigit() else numbers[0] if numbers else "1"
            values[key] = int(number)
        elif kind.get("type") == "boolean":
            values[key] = False
        elif kind.get("type") == "array":
            values[key] = []
        else:
            values[key] = given[1] if given else text or phrase("en", "small")
    return name, values
