"""What Slack refuses in texts, blocks and views; and finding what can be pressed in them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.servers.slack.errors import SlackError, invalid_arguments, invalid_blocks
from tests.servers.slack.world import Json, block_texts

# Characters: a text, one in chat.update, a markdown text or all markdown blocks together, everything in blocks, a section, a field.
TEXT, UPDATED, MARKDOWN, BLOCKS_TOGETHER, SECTION, FIELD = 40_000, 4_000, 12_000, 13_200, 3_000, 2_000
HEADER, BUTTON, VALUE, ACTION_ID, OPTION, OPTION_VALUE = 150, 75, 2_000, 255, 75, 150

MESSAGE_ONLY = {"markdown", "table", "file", "context_actions", "task_card", "plan"}
EVERYWHERE = {"section", "divider", "header", "actions", "context", "image", "input", "rich_text", "video"}
INTERACTIVE = {
    "button",
    "overflow",
    "static_select",
    "multi_static_select",
    "users_select",
    "conversations_select",
    "checkboxes",
    "radio_buttons",
    "datepicker",
    "timepicker",
    "plain_text_input",
    "number_input",
    "email_text_input",
    "url_text_input",
    "feedback_buttons",
    "icon_button",
}


def check_text(text: str, most: int = TEXT) -> None:
    if len(text) > most:
        raise SlackError("msg_too_long")


def check_markdown(text: str) -> None:
    if len(text) > MARKDOWN:
        raise SlackError("msg_too_long")


def check_message(blocks: list[Json]) -> None:
    """The blocks of a message."""
    check_blocks(blocks, 50, EVERYWHERE | MESSAGE_ONLY)
    together = sum(len(block.get("text", "")) for block in blocks if block["type"] == "markdown")
    if together > MARKDOWN:
        raise invalid_blocks(f"markdown blocks have {together} characters together, {MARKDOWN} are allowed")
    if sum(map(len, block_texts(blocks))) > BLOCKS_TOGETHER:
        raise SlackError("msg_blocks_too_long")


def check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not isinstance(metadata.get("event_type"), str):
        raise SlackError("invalid_metadata_format")
    if not isinstance(metadata.get("event_payload"), dict):
        raise SlackError("invalid_metadata_schema")
    if len(json.dumps(metadata)) > 16_000:
        raise SlackError("metadata_too_large")


def check_view(view: object) -> Json:
    """A modal or Home tab."""
    if not isinstance(view, dict):
        raise invalid_arguments("view must be an object")
    if view.get("type") not in ("modal", "home"):
        raise invalid_arguments("view type must be modal or home")
    blocks = view.get("blocks")
    if not isinstance(blocks, list):
        raise invalid_arguments("missing required field: blocks")
    check_blocks(blocks, 100, EVERYWHERE)
    if view["type"] == "modal":
        _plain(view.get("title"), 24, "title", required=True)
        _plain(view.get("submit"), 24, "submit", required=any(block["type"] == "input" for block in blocks))
        _plain(view.get("close"), 24, "close", required=False)
    if len(view.get("private_metadata") or "") > 3_000 or len(view.get("callback_id") or "") > 255:
        raise invalid_arguments("private_metadata or callback_id is too long")
    if len(json.dumps(view)) > 250_000:
        raise SlackError("view_too_large")
    return view


def check_blocks(blocks: object, most: int, allowed: set[str]) -> None:
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SlackError("invalid_blocks_format")
    if len(blocks) > most:
        raise invalid_blocks(f"no more than {most} items allowed [json-pointer:/blocks]")
    ids = [block["block_id"] for block in blocks if block.get("block_id")]
    if len(ids) != len(set(ids)):
        raise invalid_blocks("block_id is used more than once")
    for number, block in enumerate(blocks):
        if block.get("type") not in allowed:
            raise invalid_blocks(f"unsupported type: {block.get('type')} [json-pointer:/blocks/{number}/type]")
        reason = _refusal(block)
        if reason:
            raise invalid_blocks(f"{reason} [json-pointer:/blocks/{number}]")


def _refusal(block: Json) -> str | None:
    kind = block["type"]
    elements = block.get("elements", [])
    match kind:
        case "section":
            if not block.get("text") and not block.get("fields"):
                return "text or fields is missing"
            if block.get("text"):
                return _text(block["text"], SECTION) or _element_if(block.get("accessory"))
            if len(block["fields"]) > 10:
                return "no more than 10 fields"
            return next((bad for one in block["fields"] if (bad := _text(one, FIELD))), _element_if(block.get("accessory")))
        case "markdown":
            return None if isinstance(block.get("text"), str) and block["text"] else "text must be a string and not empty"
        case "header":
            return _text(block.get("text"), HEADER, plain=True)
        case "actions":
            if not 1 <= len(elements) <= 25:
                return "1 to 25 elements are allowed"
            ids = [one["action_id"] for one in elements if one.get("action_id")]
            if len(ids) != len(set(ids)):
                return "action_id is used more than once"
            return next((bad for one in elements if (bad := _element(one))), None)
        case "context":
            if not 1 <= len(elements) <= 10:
                return "1 to 10 elements are allowed"
            return next((bad for one in elements if one.get("type") != "image" and (bad := _text(one, SECTION))), None)
        case "input":
            return _text(block.get("label"), 2_000, plain=True) or _element_if(block.get("element"), required=True)
        case _:
            return None


def _element_if(element: object, *, required: bool = False) -> str | None:
    if element is None:
        return "element is missing" if required else None
    return _element(element)


def _element(element: object) -> str | None:
    if not isinstance(element, dict) or element.get("type") not in INTERACTIVE | {"image", "rich_text_input"}:
        return f"unsupported element: {element.get('type') if isinstance(element, dict) else element}"
    if len(element.get("action_id") or "") > ACTION_ID:
        return f"action_id must be less than {ACTION_ID + 1} characters"
    if element["type"] == "button":
        if len(element.get("value") or "") > VALUE:
            return f"value must be less than {VALUE + 1} characters"
        if element.get("style") not in (None, "primary", "danger"):
            return "style must be primary or danger"
        return _text(element.get("text"), BUTTON, plain=True)
    options = element.get("options")
    if options is not None:
        most = {"overflow": 5, "checkboxes": 10, "radio_buttons": 10}.get(element["type"], 100)
        if not 1 <= len(options) <= most:
            return f"1 to {most} options are allowed"
        for option in options:
            if bad := _text(option.get("text"), OPTION):
                return bad
            if len(option.get("value") or "") > OPTION_VALUE:
                return f"an option's value must be less than {OPTION_VALUE + 1} characters"
    return None


def _text(text: object, most: int, *, plain: bool = False) -> str | None:
    kinds = ("plain_text",) if plain else ("plain_text", "mrkdwn")
    if not isinstance(text, dict) or text.get("type") not in kinds or not isinstance(text.get("text"), str):
        return f"a text object of type {' or '.join(kinds)} is needed"
    if not text["text"]:
        return "must be more than 0 characters"
    return f"must be less than {most + 1} characters" if len(text["text"]) > most else None


def _plain(text: object, most: int, name: str, *, required: bool) -> None:
    if text is None and not required:
        return
    bad = "missing required field" if text is None else _text(text, most, plain=True)
    if bad:
        raise invalid_arguments(f"{name}: {bad}")


# Finding.


def interactive(blocks: list[Json]) -> Iterator[tuple[Json, Json]]:
    """What can be pressed, chosen or filled in, with its block."""
    for block in blocks:
        for element in [*block.get("elements", []), block.get("accessory"), block.get("element")]:
            if isinstance(element, dict) and element.get("type") in INTERACTIVE:
                yield block, element


def find(blocks: list[Json], wanted: str) -> tuple[Json, Json]:
    """By action_id, label, or value. AssertionError when there is none."""
    for block, element in interactive(blocks):
        label = element.get("text", {}).get("text") or block.get("label", {}).get("text")
        if wanted in (element.get("action_id"), label, element.get("value"), block.get("block_id")):
            return block, element
    there = [(one.get("action_id"), one.get("text", {}).get("text")) for _, one in interactive(blocks)]
    raise AssertionError(f"nothing to press called {wanted!r}; there are {there}")
