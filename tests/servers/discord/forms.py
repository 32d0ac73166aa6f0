"""What Discord's client makes of a command line, a pressed button and a filled-in modal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.servers.discord import payloads
from tests.servers.discord.world import Attachment, Channel, Guild, Json, Role, User, World

SUBCOMMAND, SUBCOMMAND_GROUP, STRING, INTEGER, BOOLEAN, USER, CHANNEL, ROLE, MENTIONABLE, NUMBER, ATTACHMENT = range(1, 12)
_TYPES: dict[int, tuple[type, ...]] = {
    STRING: (str,),
    INTEGER: (int,),
    BOOLEAN: (bool,),
    USER: (User,),
    CHANNEL: (Channel,),
    ROLE: (Role,),
    MENTIONABLE: (User, Role),
    NUMBER: (int, float),
    ATTACHMENT: (Attachment,),
}


def command_data(world: World, guild: Guild | None, line: str, values: Mapping[str, object], focused: str | None = None) -> Json:
    """The data of "memory search" with its options. What the client would not let a person send is an AssertionError."""
    name, *path = line.removeprefix("/").split()
    command = _registered(world, guild, name)
    options: list[Json] = command.get("options") or []
    groups: list[Json] = []
    for part in path:
        group = next((one for one in options if one["name"] == part and one["type"] <= SUBCOMMAND_GROUP), None)
        assert group is not None, f"/{line}: no subcommand {part}"
        groups.append(group)
        options = group.get("options") or []
    assert not any(one["type"] <= SUBCOMMAND_GROUP for one in options), f"/{line} needs a subcommand"
    data: Json = {"id": command["id"], "name": name, "type": 1}
    resolved: dict[str, Json] = {}
    chosen = _options(line, options, values, focused, resolved, guild)
    for group in reversed(groups):
        chosen = [{"name": group["name"], "type": group["type"], "options": chosen}]
    if chosen:
        data["options"] = chosen
    if resolved:
        data["resolved"] = resolved
    return data


def component(components: list[Json], wanted: str) -> Json:
    """The button or menu with this custom_id, label or placeholder."""
    names = ("custom_id", "label", "placeholder")
    found = next((one for one in walk(components) if "custom_id" in one and wanted in [one.get(name) for name in names]), None)
    assert found is not None, f"no component {wanted!r} in {components}"
    assert not found.get("disabled"), f"{wanted!r} is disabled"
    return found


def component_data(found: Json, values: list[str] | None) -> Json:
    data: Json = {"custom_id": found["custom_id"], "component_type": found["type"], "id": found.get("id", 1)}
    return data if values is None else {**data, "values": values}


def modal_data(modal: Json, values: Mapping[str, str]) -> Json:
    """A submitted modal; `values` by custom_id or label. Fields left out are empty and must not be required."""
    left = dict(values)
    data = {"custom_id": modal["custom_id"], "components": [_filled(one, left) for one in modal["components"]]}
    assert not left, f"the modal has no {sorted(left)}"
    return data


def walk(components: list[Json]) -> Iterator[Json]:
    for one in components:
        yield one
        yield from walk(one.get("components") or [])
        for nested in ("component", "accessory"):
            yield from walk([one[nested]] if nested in one else [])


def _registered(world: World, guild: Guild | None, name: str) -> Json:
    scopes = [guild.id if guild else None, None]
    commands = [one for scope in scopes for one in world.application.commands.get(scope, []) if one["type"] == 1]
    found = next((one for one in commands if one["name"] == name), None)
    assert found is not None, f"/{name} is not registered; there are {sorted({one['name'] for one in commands})}"
    contexts = found.get("contexts")
    assert contexts is None or (0 if guild else 1) in contexts, f"/{name} is not offered here"
    return found


def _options(
    line: str,
    options: list[Json],
    values: Mapping[str, object],
    focused: str | None,
    resolved: dict[str, Json],
    guild: Guild | None,
) -> list[Json]:
    offered = {one["name"]: one for one in options}
    unknown = set(values) - set(offered)
    assert not unknown, f"/{line} has no option {sorted(unknown)}; it has {sorted(offered)}"
    missing = [one["name"] for one in options if one.get("required") and one["name"] not in values]
    assert focused or not missing, f"/{line} needs {missing}"
    made = []
    for name, value in values.items():
        option = offered[name]
        if name != focused:
            _check_value(line, option, value)
        one: Json = {"name": name, "type": option["type"], "value": _resolve(value, resolved, guild)}
        made.append({**one, "focused": True} if name == focused else one)
    return made


def _check_value(line: str, option: Json, value: object) -> None:
    where = f"/{line} {option['name']}: {value!r}"
    assert isinstance(value, _TYPES[option["type"]]), f"{where} is of the wrong type"
    assert isinstance(value, bool) == (option["type"] == BOOLEAN), f"{where} is of the wrong type"
    choices = option.get("choices")
    assert not choices or value in [one["value"] for one in choices], f"{where} is none of the choices"
    if isinstance(value, str):
        assert option.get("min_length", 0) <= len(value) <= option.get("max_length", 6000), f"{where} has not the right length"
    elif isinstance(value, int | float):
        assert option.get("min_value", value) <= value <= option.get("max_value", value), f"{where} is too small or too large"


def _resolve(value: object, resolved: dict[str, Json], guild: Guild | None) -> object:
    """The value as sent; what is an object goes by its id, and beside it into `resolved`."""
    if isinstance(value, Attachment):
        resolved.setdefault("attachments", {})[str(value.id)] = payloads.attachment_json(value)
    elif isinstance(value, User):
        resolved.setdefault("users", {})[str(value.id)] = payloads.user_json(value)
        if guild is not None and value.id in guild.members:
            member = {**payloads.member_json(guild.members[value.id], partial=True), "permissions": "0"}
            resolved.setdefault("members", {})[str(value.id)] = member
    elif isinstance(value, Role):
        resolved.setdefault("roles", {})[str(value.id)] = payloads.role_json(value)
    elif isinstance(value, Channel):
        body = {"id": str(value.id), "type": value.kind, "name": value.name, "permissions": "0"}
        resolved.setdefault("channels", {})[str(value.id)] = body
    else:
        return value
    return str(value.id)


def _filled(one: Json, values: dict[str, str]) -> Json:
    if "component" in one:
        return {"type": one["type"], "id": one.get("id", 1), "component": _field(one["component"], one.get("label"), values)}
    if "components" in one:
        return {
            "type": one["type"],
            "id": one.get("id", 1),
            "components": [_filled(inner, values) for inner in one["components"]],
        }
    return _field(one, one.get("label"), values) if "custom_id" in one else {"type": one["type"], "id": one.get("id", 1)}


def _field(one: Json, label: str | None, values: dict[str, str]) -> Json:
    key = next((name for name in (one["custom_id"], label) if name in values), None)
    value = values.pop(key) if key is not None else one.get("value", "")
    assert value or not one.get("required", True), f"the modal's {label or one['custom_id']!r} is required"
    assert len(value) <= one.get("max_length", 4000), f"the modal's {label or one['custom_id']!r} is too long"
    body: Json = {"type": one["type"], "id": one.get("id", 1), "custom_id": one["custom_id"]}
    return {**body, "value": value} if one["type"] == 4 else {**body, "values": [value] if value else []}
