"""What the model may call, a module per place they act on.

`registry` makes a schema from a function's signature and docstring; `context` is what a function is closed over: one agent, one turn.
To add a function: write it in the module of its place and list it in `ALL`.
"""

from collections.abc import Collection

from bot.functions import archival_storage, forget, recall_storage, reply, requests, speaking, timers, working_context
from bot.functions.registry import Function, Need, describe
from bot.model.calls import FunctionSchema

_BOTH = ("request_heartbeat", "reason")

ALL: tuple[Function, ...] = (
    describe(reply.send_message, kind="reply", tells=("request_heartbeat",), small_need="unaddressed"),
    describe(working_context.working_context_append, kind="write", tells=_BOTH, brief="Keep a lasting fact about the person."),
    describe(recall_storage.recall_storage_search, kind="search", small=("query", "page"), brief="Search all earlier messages."),
    describe(archival_storage.archival_storage_insert, kind="write", tells=_BOTH, small=None),
    describe(timers.set_timer, kind="write", small=("asked", "at", "in_minutes")),
    describe(speaking.set_time_zone, kind="write", need="zone", brief="Set their time zone."),
    describe(speaking.set_speaking_leave, kind="write", need="leave", small=None),
    describe(working_context.working_context_replace, kind="write", need="entries", tells=_BOTH),
    describe(working_context.working_context_remove, kind="write", need="entries", tells=("reason",)),
    describe(
        archival_storage.archival_storage_search,
        kind="search",
        need="archive",
        small=("query", "page"),
        brief="Search stored documents.",
    ),
    describe(
        archival_storage.archival_storage_read,
        kind="search",
        need="documents",
        small=("page",),
        brief="Read a page of a document; cite its source.",
    ),
    describe(timers.cancel_timer, kind="write", need="timers"),
    describe(timers.list_timers, kind="search", need="timers"),
    describe(
        requests.answer_memory_request,
        kind="write",
        need="request",
        brief="After their yes or no to the question about something sensitive.",
    ),
    describe(reply.stay_silent, kind="reply", need="unaddressed"),
    describe(forget.forget, kind="write", need="forgetting"),
)
BY_NAME = {function.schema.name: function for function in ALL}
SCHEMAS = tuple(function.schema for function in ALL)
"""All of them, as a large model is told."""
EVERY_NEED: frozenset[Need] = frozenset(function.need for function in ALL)
FULLEST: tuple[frozenset[Need], ...] = (
    EVERY_NEED - {"unaddressed", "forgetting"},
    EVERY_NEED - {"forgetting", "leave", "zone", "request"},
)
"""The most that a turn can need: one in which the bot was addressed, and one in which it was not."""


def offered(needs: Collection[Need], *, small: bool = False) -> tuple[FunctionSchema, ...]:
    """What the model is offered where these needs are, always in the same order: what comes and goes most often stands last, so that the
    prompt's beginning stays the same."""
    wanted = {*needs, "always"}
    if small:
        return tuple(each.small for each in ALL if each.small is not None and each.small_need in wanted)
    return tuple(each.schema for each in ALL if each.need in wanted)
