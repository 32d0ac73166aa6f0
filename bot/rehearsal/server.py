"""The rehearsal model behind OpenAI's HTTP protocol, on loopback, in the caller's event loop."""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from bot.rehearsal.policy import Answer, answer
from bot.rehearsal.view import Json, listed, view_of

MODEL = "rehearsal"
"""The name it answers under; any other does as well."""


@asynccontextmanager
async def serve(port: int = 0) -> AsyncIterator[str]:
    """Serves until the block ends; yields the base URL. Port 0 takes a free one; a taken one raises OSError."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", _chat)
    app.router.add_get("/v1/models", _models)
    app.router.add_post("/v1/embeddings", _embeddings)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def _models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "keepsake"}]})


async def _embeddings(_: web.Request) -> web.Response:
    return _error(
        404, "model_not_found", "The rehearsal model makes no embeddings; use the built-in embedder or name another endpoint."
    )


async def _chat(http: web.Request) -> web.StreamResponse:
    try:
        request = json.loads(await http.read())
        if not isinstance(request, dict):
            raise ValueError("the body must be an object")
        by_schema = schema_functions(request)
        made = answer(view_of(request if by_schema is None else unschemed(request, by_schema)))
    except (ValueError, RecursionError) as error:
        return _error(400, "invalid_request_error", f"The rehearsal model cannot read this request: {error}")
    body = completion(request, made, by_schema is not None)
    return await _streamed(http, body) if request.get("stream") else web.json_response(body)


async def _streamed(http: web.Request, body: Json) -> web.StreamResponse:
    """A body as a stream of two chunks: the whole message, and how it ended, with the usage."""
    choices: Any = body["choices"]
    message: Json = dict(choices[0]["message"])
    if "tool_calls" in message:
        message["tool_calls"] = [{"index": index, **one} for index, one in enumerate(listed(message["tool_calls"]))]
    ended = {"index": 0, "delta": {}, "finish_reason": choices[0]["finish_reason"]}
    chunks = ({"choices": [{"index": 0, "delta": message, "finish_reason": None}]}, {"choices": [ended]})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(http)
    for chunk in chunks:
        await response.write(f"data: {json.dumps({**body, 'object': 'chat.completion.chunk', **chunk})}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


def completion(request: Mapping[str, object], made: Answer, by_schema: bool) -> Json:
    """The body of an answer. Tokens are estimated at four characters each; ids follow from the request."""
    sent = json.dumps(request.get("messages"), ensure_ascii=False) + json.dumps(request.get("tools", ""))
    mark = hashlib.sha256(sent.encode("utf-8", "replace")).hexdigest()[:16]
    message: Json = {"role": "assistant", "content": made.text or None}
    if by_schema:
        calls = [{"function": name, "arguments": values} for name, values in made.calls]
        message["content"] = json.dumps({"calls": calls, "text": made.text}, ensure_ascii=False)
    elif made.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{mark}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(values, ensure_ascii=False)},
            }
            for number, (name, values) in enumerate(made.calls)
        ]
    prompt, written = len(sent) // 4, max(1, len(json.dumps(message, ensure_ascii=False)) // 4)
    return {
        "id": f"chatcmpl-{mark}",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }


# --- calls by JSON schema ---------------------------------------------------------------------------


def schema_functions(request: Mapping[str, object]) -> list[Json] | None:
    """The functions of a request that asks for calls by `response_format`, as tools; None for any other request."""
    found: object = request.get("response_format")
    for key in ("json_schema", "schema", "properties"):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict) or "text" not in found:
        return None
    calls = found.get("calls")
    options = calls.get("items", {}).get("anyOf", []) if isinstance(calls, dict) else []
    tools: list[Json] = []
    for option in options:
        properties = option["properties"]
        function = {"name": properties["function"]["enum"][0], "parameters": properties["arguments"]}
        tools.append({"type": "function", "function": function})
    return tools


def unschemed(request: Mapping[str, object], tools: list[Json]) -> Json:
    """The request as it would be with function calls: replies and results that are JSON text become calls and results."""
    messages: list[Json] = []
    open_ids: list[str] = []
    given = request.get("messages")
    for number, message in enumerate(given if isinstance(given, list) else []):
        value = _object(message.get("content")) if isinstance(message, dict) else {}
        if message.get("role") == "assistant" and "calls" in value:
            calls = [
                {
                    "id": f"{number}.{index}",
                    "function": {"name": one.get("function"), "arguments": json.dumps(one.get("arguments", {}))},
                }
                for index, one in enumerate(listed(value["calls"]))
            ]
            open_ids += [str(one["id"]) for one in calls]
            messages.append({"role": "assistant", "content": value.get("text") or None, "tool_calls": calls})
        elif isinstance(content := message.get("content"), str) and message.get("role") == "user":
            lines = content.split("\n")
            results = [value for line in lines if (value := _object(line)).get("type") == "function_result" and open_ids]
            messages += [{"role": "tool", "tool_call_id": open_ids.pop(0), "content": one.get("result")} for one in results]
            if rest := [line for line in lines if _object(line) not in results]:
                messages.append({**message, "content": "\n".join(rest)})
        else:
            messages.append(message)
    return {**request, "messages": messages, "tools": tools}


def _object(content: object) -> Json:
    try:
        value = json.loads(content) if isinstance(content, str) and content.startswith("{") else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _error(status: int, code: str, message: str) -> web.Response:
    error = {"message": message, "type": code, "code": code, "param": None}
    return web.json_response({"error": error}, status=status)
