"""A chat request as the rehearsal model sees it: what is visible, what happened in this turn, what it may call. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

Json = dict[str, object]
_AGAIN = re.compile(r"answer their last message once more", re.I)
"""What an event says by which the person wants another answer."""
_NOTICE = re.compile(r"\n\nNotice from the system[^\n]*:\n")
"""Where a result ends and what the system has to say begins."""
_SECTIONS = ("profile", "preferences", "key_facts", "goals", "task_notes")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that woke the agent."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """A call and what came of it."""

    function: str
    arguments: Mapping[str, object]
    text: str = ""

    @property
    def failed(self) -> bool:
        return bool(re.match(r"\s*(?:error\b|failed\b|\{\s*\"status\":\s*\"(?:error|failed)\")", self.text, re.I))


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result."""

    time: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """What one request shows. `events` and `results` are those of the turn that goes on, `earlier` the calls before it."""

    system: str = ""
    functions: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """The arguments of each function that may be called."""
    must_call: bool = False
    entries: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    results: tuple[Result, ...] = ()
    earlier: tuple[Result, ...] = ()
    heard: tuple[str, ...] = ()
    """What the person said in the visible conversation before this turn."""
    spoken: bool = False
    """Whether the assistant has said something that is still visible."""
    now: datetime = datetime(2026, 1, 1)  # noqa: DTZ001 - a clock on the wall
    """The time on the person's clock, as the status line says it."""
    zone_known: bool = True

    @property
    def message(self) -> str:
        """What the person said in this turn."""
        return "\n".join(event.text for event in self.events if event.kind == "user_message")


def view_of(request: Mapping[str, object]) -> View:
    """Reads the body of a chat request; raises ValueError where it is none."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise ValueError("messages must be a list of objects")
    system = "\n".join(_text(one) for one in messages if one.get("role") in ("system", "developer"))
    forbidden = request.get("tool_choice") == "none"
    view = View(
        system=system,
        functions={} if forbidden else _functions(request.get("tools")),
        must_call=request.get("tool_choice") not in (None, "none", "auto"),
        entries=tuple(_entries(system)),
    )
    packaged = any(_event(_text(one).partition("\n")[0]) for one in messages if one.get("role") == "user")
    for message in messages:
        view = _after(view, message, packaged)
    return _on_time(view, messages)


def _on_time(view: View, messages: Sequence[Json]) -> View:
    """With what the status line says of the time."""
    said = [_json(line) for one in messages if one.get("role") == "user" for line in _text(one).split("\n")]
    status = next((one for one in reversed(said) if one.get("type") == "status"), {})
    found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d", str(status.get("time") or ""))
    now = datetime.fromisoformat(found[0]) if found else view.now
    return replace(view, now=now, zone_known=not str(status.get("time_zone") or "").startswith("unknown"))


def _after(view: View, message: Json, packaged: bool) -> View:
    role, text = message.get("role"), _text(message)
    if role == "user":
        view = replace(view, entries=(*view.entries, *_later_entries(text)))
        # Beside packaged events plain text is nothing that happened.
        events = _events(text) or ([] if packaged else [Event("user_message", text)])
        for event in events:
            view = _happened(view, event)
        return view
    if role == "tool":
        results = list(view.results)
        text, *noticed = _NOTICE.split(text, maxsplit=1)
        for number, result in enumerate(results):
            if result.text == "" and result.arguments.get("\0id") == message.get("tool_call_id"):
                results[number] = replace(result, text=text or " ")
                break
        told = tuple(event for each in noticed for event in _events(each))
        return replace(view, results=tuple(results), events=(*view.events, *told))
    if role != "assistant":
        return view
    made = tuple(_calls(message))
    spoken = view.spoken or bool(text.strip())
    if not made:
        return replace(_finished(view), spoken=spoken)
    return replace(view, results=(*view.results, *made), spoken=spoken)


def _happened(view: View, event: Event) -> View:
    if _AGAIN.search(event.text) and event.kind != "user_message" and (said := _last_said(view)):
        event = Event("user_message", said)
    return replace(_closed(view), events=(*_closed(view).events, event))


def _last_said(view: View) -> str:
    """The person's last message, in this turn or before it."""
    said = [*view.heard, *(event.text for event in view.events if event.kind == "user_message")]
    return said[-1] if said else ""


def _closed(view: View) -> View:
    """The view when something new arrives: a turn whose calls all ended it is over."""
    goes_on = any(_heartbeat(result) or result.failed for result in view.results)
    return _finished(view) if view.results and not goes_on else view


def _finished(view: View) -> View:
    heard = (*view.heard, *(event.text for event in view.events if event.kind == "user_message"))
    return replace(view, events=(), results=(), earlier=(*view.earlier, *view.results), heard=heard)


def _heartbeat(result: Result) -> bool:
    return bool(result.arguments.get("request_heartbeat", result.function.endswith("_search")))


def _calls(message: Json) -> Sequence[Result]:
    found = []
    for one in listed(message.get("tool_calls")):
        function = one.get("function")
        if isinstance(function, dict):
            arguments = _json(str(function.get("arguments") or "{}"))
            found.append(Result(str(function.get("name")), {**arguments, "\0id": one.get("id")}))
    return found


def _functions(tools: object) -> dict[str, Mapping[str, Json]]:
    found: dict[str, Mapping[str, Json]] = {}
    for tool in listed(tools):
        function = tool.get("function")
        if isinstance(function, dict):
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, dict) else None
            found[str(function.get("name"))] = properties if isinstance(properties, dict) else {}
    return found


def _entries(system: str) -> list[str]:
    """The working context's entries: list items under a heading that names a section."""
    found, inside = [], False
    for line in system.splitlines():
        heading = re.match(r"\s*(?:#+|\[|<|\*\*)\s*/?([\w ]+)", line)
        if heading:
            inside = heading[1].strip().lower().replace(" ", "_") in _SECTIONS
        elif inside and (item := re.match(r"\s*[-*•]\s+(.+)", line)):
            found.append(item[1].strip())
    return found


def _later_entries(text: str) -> list[str]:
    """The entries that a status tells of: `section: content`."""
    told = (_json(line).get("working_context") for line in text.split("\n"))
    return [str(one).partition(": ")[2] for each in told if isinstance(each, list) for one in each]


def _events(text: str) -> list[Event]:
    """The events in a message of packages, a line of JSON each; the status and a picture's name are none."""
    made = [_event(line) for line in text.split("\n") if line.strip()]
    found = [event for event in made if event is not None]
    return [event for event in found if event.kind not in ("status", "image")] if len(found) == len(made) else []


def _event(text: str) -> Event | None:
    value = _json(text)
    kind = value.get("type", "user_message" if isinstance(value.get("message"), str) else None)
    if not isinstance(kind, str):
        return None
    words = next((value[key] for key in ("message", "text", "reason", "purpose", "summary") if value.get(key)), "")
    return Event("alert" if "alert" in kind else kind, str(words))


def pages_of(text: str) -> tuple[int, int]:
    """(page, pages) of a search result; (1, 1) where it does not say."""
    match = re.search(r"\(page (\d+)/(\d+)\)", text)
    return (int(match[1]), int(match[2])) if match else (1, 1)


def hits_of(text: str) -> list[Hit]:
    """The results in a result text: a line each, JSON or plain."""
    found = []
    for line in text.splitlines():
        value = _json(line)
        words = next((str(value[key]) for key in ("text", "content", "message") if value.get(key)), "")
        if value and words:
            speaker = str(value.get("from") or value.get("role") or value.get("said_by") or "")
            found.append(Hit(str(value.get("time") or value.get("timestamp") or ""), speaker, words))
        elif not value and line.strip() and not re.match(r"\s*(?:Showing|No results|More on page|There is no page)", line):
            date = re.search(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d)?", line)
            found.append(Hit(date[0] if date else "", "", line.strip(" -*")))
    return found


def _text(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in listed(content))
    return content if isinstance(content, str) else ""


def _json(text: str) -> Json:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Json]:
    """The objects in a list, none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
