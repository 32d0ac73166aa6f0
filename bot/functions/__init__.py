"""What the model may call, a module per place they act on.

`registry` makes a schema from a function's signature and docstring; `context` is what a function is closed over: one agent, one turn.
To add a function: write it in the module of its place and list it in `ALL`.
"""

from bot.functions import archival_storage, forget, recall_storage, reply, requests, speaking, timers, working_context
from bot.functions.registry import Function, describe

ALL: tuple[Function, ...] = (
    describe(reply.send_message, kind="reply"),
    describe(reply.stay_silent, kind="reply"),
    describe(working_context.working_context_append, kind="write"),
    describe(working_context.working_context_replace, kind="write"),
    describe(working_context.working_context_remove, kind="write"),
    describe(forget.forget, kind="write"),
    describe(recall_storage.recall_storage_search, kind="search"),
    describe(archival_storage.archival_storage_insert, kind="write"),
    describe(archival_storage.archival_storage_search, kind="search"),
    describe(timers.set_timer, kind="write"),
    describe(timers.cancel_timer, kind="write"),
    describe(timers.list_timers, kind="search"),
    describe(requests.answer_memory_request, kind="write"),
    describe(speaking.set_speaking_leave, kind="write"),
    describe(speaking.set_time_zone, kind="write"),
)
BY_NAME = {function.schema.name: function for function in ALL}
SCHEMAS = tuple(function.schema for function in ALL)
"""Always in this order, so that the prompt's beginning stays the same."""
