"""The parts of interaction payloads, and what the answers to them do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.servers.slack import blocks as kit
from tests.servers.slack.interactions import Interaction, Interactions
from tests.servers.slack.world import Json, Message, Team, View

Taken = Callable[[Interaction, object], None]


def place_json(team: Team) -> Json:
    """Where it happened; an org-wide installation is told no team."""
    enterprise = {"id": team.enterprise.id, "name": team.enterprise.name} if team.enterprise else None
    where: Json = {"id": team.id, "domain": team.domain}
    if enterprise is not None:
        where |= {"enterprise_id": enterprise["id"], "enterprise_name": enterprise["name"]}
    return {"team": None if team.org_wide else where, "enterprise": enterprise, "is_enterprise_install": team.org_wide}


def container_json(where: Message | View) -> Json:
    if isinstance(where, View):
        return {"type": "view", "view_id": where.id}
    body: Json = {
        "type": "message",
        "message_ts": where.ts,
        "channel_id": where.channel.id,
        "is_ephemeral": where.only_for is not None,
    }
    return body | ({"thread_ts": where.thread_ts} if where.thread_ts else {})


def action_json(block: Json, element: Json, choice: str | None, ts: str) -> Json:
    body: Json = {
        "type": element["type"],
        "action_id": element.get("action_id", "unnamed"),
        "block_id": block.get("block_id", "unnamed"),
        "action_ts": ts,
    }
    if element["type"] == "button":
        assert choice is None, "a button has no choices"
        return body | {"text": element["text"]} | ({"value": element["value"]} if "value" in element else {})
    return body | _chosen(element, choice)


def state_json(blocks: list[Json], values: Mapping[str, object]) -> Json:
    """What the fields hold: what was typed, else what they began with."""
    left = dict(values)
    state: Json = {}
    for block, element in kit.interactive(blocks):
        if block.get("type") != "input" and element["type"] in ("button", "overflow"):
            continue
        label = block.get("label", {}).get("text")
        name = next((one for one in (block.get("block_id"), element.get("action_id"), label) if one in left), None)
        typed = left.pop(name) if name else None
        held: Json = {"type": element["type"], **_held(element, typed)}
        state.setdefault(block["block_id"], {})[element.get("action_id", "unnamed")] = held
    assert not left, f"no such fields: {list(left)}"
    return state


def _held(element: Json, typed: object) -> Json:
    if element["type"].endswith("_input"):
        return {"value": element.get("initial_value") if typed is None else typed}
    if typed is None:
        kept = {name.removeprefix("initial_"): value for name, value in element.items() if name.startswith("initial_")}
        return {f"selected_{name}": value for name, value in kept.items()} or {"selected_option": None}
    return _chosen(element, typed)


def _chosen(element: Json, choice: object) -> Json:
    options = element.get("options", [])
    if element["type"] in ("checkboxes", "multi_static_select"):
        wanted = choice if isinstance(choice, list | tuple) else [choice]
        return {"selected_options": [_option(options, str(one)) for one in wanted]}
    if options:
        return {"selected_option": _option(options, str(choice))}
    field = {"datepicker": "selected_date", "timepicker": "selected_time", "users_select": "selected_user"}.get(
        element["type"], "value"
    )
    return {field: choice}


def _option(options: list[Json], wanted: str) -> Json:
    found = next((option for option in options if wanted in (option.get("value"), option["text"]["text"])), None)
    assert found is not None, f"no option {wanted!r}"
    return found


def answered(interactions: Interactions) -> Taken:
    """The acknowledgement of a command or press may carry a message."""

    def taken(interaction: Interaction, answer: object) -> None:
        if isinstance(answer, dict) and (answer.get("text") or answer.get("blocks")) and interaction.channel is not None:
            interactions.answer(interaction, answer)

    return taken


def submitted(interactions: Interactions) -> Taken:
    """The acknowledgement of a submission closes the modal, shows errors, or puts another view in its place."""

    def taken(interaction: Interaction, answer: object) -> None:
        view = interaction.view
        assert view is not None
        action = answer.get("response_action") if isinstance(answer, dict) else None
        if action is None:
            view.open = False
            return
        assert isinstance(answer, dict)
        if action == "errors":
            interaction.errors = answer["errors"]
        elif action == "clear":
            view.open = False
            while view.previous is not None:
                view = view.previous
                view.open = False
        elif action == "update":
            interactions.update_view(view, kit.check_view(answer["view"]))
            interaction.modal = view
        elif action == "push":
            interactions.open_view(interaction, kit.check_view(answer["view"]), previous=view)
        else:
            raise AssertionError(f"response_action {action!r} is unknown to Slack")

    return taken
