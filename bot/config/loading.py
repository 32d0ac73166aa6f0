"""The configuration: `config.yaml`, overridden by the environment, checked before anything starts.

Every fault is one `ConfigError` whose text is one line that names the key and the remedy. Values are never quoted in it,
because a wrong value may be a key or a password.
"""

import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_origin

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from bot.config import persona
from bot.config.discord import DiscordSection
from bot.config.keeping import ConsentSection, KeepingSection, RetentionSection
from bot.config.persona import Persona
from bot.config.sections import (
    AccessSection,
    BudgetSection,
    ConfigSection,
    ConsoleSection,
    ContextSection,
    DatabaseSection,
    DataSection,
    EngineSection,
    HealthSection,
    LogSection,
    ModelSection,
    PersonaSection,
    RedisSection,
    TurnSection,
)
from bot.config.slack import SlackSection
from bot.config.speaking import CareSection, OpenersSection, SchedulesSection, WelcomeSection

PREFIX = "KEEPSAKE__"
FILE = "config.yaml"
OPENAI = "https://api.openai.com/v1"


class ConfigError(Exception):
    """The configuration is wrong; the text is one line that names the key and what to do."""


class Config(BaseSettings):
    """All settings, by section. `KEEPSAKE__SECTION__KEY` in the environment wins over the file."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True)

    data: DataSection = DataSection()
    database: DatabaseSection = DatabaseSection()
    redis: RedisSection = RedisSection()
    model: ModelSection = ModelSection()
    context: ContextSection = ContextSection()
    turn: TurnSection = TurnSection()
    budget: BudgetSection = BudgetSection()
    engine: EngineSection = EngineSection()
    persona: PersonaSection = PersonaSection()
    console: ConsoleSection = ConsoleSection()
    discord: DiscordSection = DiscordSection()
    slack: SlackSection = SlackSection()
    openers: OpenersSection = OpenersSection()
    care: CareSection = CareSection()
    schedules: SchedulesSection = SchedulesSection()
    welcome: WelcomeSection = WelcomeSection()
    access: AccessSection = AccessSection()
    consent: ConsentSection = ConsentSection()
    keeping: KeepingSection = KeepingSection()
    retention: RetentionSection = RetentionSection()
    log: LogSection = LogSection()
    health: HealthSection = HealthSection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment first, then what the file says (handed in as init values)."""
        return env_settings, init_settings


class Loaded:
    """A checked configuration with what hangs on it: the folder it is relative to, the persona, the key."""

    def __init__(self, config: Config, home: Path, file_values: Mapping[str, Any], file: Path | None = None) -> None:
        """`file`: where the operator's settings stand or would stand; config.yaml in `home` unless given."""
        self.config = config
        self.file_values = file_values
        self.home = home
        self.file = file or home / FILE
        given = os.environ.get("KEEPSAKE_DATA")
        self.data = Path(given).absolute() if given else (home / Path(config.data.folder).expanduser()).absolute()
        self.key = _key("api_key_env", config.model.api_key_env)
        self.fallback_key = _key("fallback_key_env", config.model.fallback_key_env)
        self.persona = _persona(config.persona.file, home)

    @property
    def rehearsal(self) -> bool:
        """No endpoint and no key: the rehearsal model inside answers."""
        return not self.config.model.base_url and self.key is None

    @property
    def model_url(self) -> str:
        """The address of the model's endpoint; empty for the rehearsal model."""
        return self.config.model.base_url or ("" if self.rehearsal else OPENAI)

    @property
    def embedded(self) -> bool:
        """PostgreSQL, Redis or both run inside, in the data folder."""
        return not self.config.database.url or not self.config.redis.url


def load(path: Path | None = None) -> Loaded:
    """Read and check the configuration.

    Without `path` the file is the one that KEEPSAKE_CONFIG names, else config.yaml in the current folder if there is one.
    Raises ConfigError.
    """
    named = path or (Path(os.environ["KEEPSAKE_CONFIG"]) if os.environ.get("KEEPSAKE_CONFIG") else None)
    file = named or Path(FILE)
    if named is not None and not named.is_file():
        raise ConfigError(f"{named}: no such file. Name an existing file with --config or KEEPSAKE_CONFIG, or leave both out.")
    values = read_yaml(file) if file.is_file() else {}
    unknown = dict(_unknown_variables())
    faults = list(unknown.values())
    try:
        config = Config(**{key: {} if value is None else value for key, value in values.items()})
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        faults += [_line(fault, file.name) for fault in found if _variable(fault) not in unknown]
    except SettingsError:
        faults += _no_json() or [
            "a KEEPSAKE__ variable of the environment cannot be read. Set one variable for each key: KEEPSAKE__SECTION__KEY."
        ]
    if faults:
        raise ConfigError(_one_line(faults))
    return Loaded(config, file.absolute().parent, values, file.absolute())


def keys() -> tuple[str, ...]:
    """Every key as `section.key`, in the order of the file."""
    return tuple(f"{name}.{key}" for name, section in _sections().items() for key in section.model_fields)


def read_yaml(file: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises ConfigError: it cannot be read, is no mapping, or names a key twice."""
    try:
        loader = _Loader(file.read_text("utf-8"))
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
        twice = list(_twice(node, ""))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(
            f"{file.name}: line {line} is no valid YAML ({error.problem or error.context}). Correct it there."
        ) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: cannot be read ({type(error).__name__}). Make it a readable UTF-8 file.") from error
    except RecursionError as error:
        raise ConfigError(f"{file.name}: is nested without end (an alias inside its own anchor?). Write it without.") from error
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{file.name}: must hold `section:` lines with their keys below. See the config.yaml that came along.")
    for key, line in twice:
        raise ConfigError(f"{file.name}: {key} appears twice (again on line {line}). Remove one of them.")
    return value


class _Loader(yaml.SafeLoader):
    """Says in which line a value stands that looks like a day or a number and is none, such as 2026-13-01."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            problem = "no such day or number; a text of that look goes between quotes"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def _twice(node: yaml.Node | None, inside: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = f"{inside}{key.value}"
            if name in seen:
                yield name, key.start_mark.line + 1
            seen.add(name)
            yield from _twice(value, f"{name}.")


def _sections() -> Mapping[str, type[ConfigSection]]:
    found: dict[str, type[ConfigSection]] = {}
    for name, field in Config.model_fields.items():
        kind = field.annotation
        assert isinstance(kind, type)
        assert issubclass(kind, ConfigSection)
        found[name] = kind
    return found


def _unknown_variables() -> Iterator[tuple[str, str]]:
    known = {PREFIX + key.replace(".", "__").upper() for key in keys()}
    for name in sorted(os.environ):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            yield (
                name.upper(),
                f"{name}: no such key{_guess(name.upper(), known)}. Unset this environment variable, or correct its name.",
            )


def _guess(wrong: str, known: set[str]) -> str:
    near = difflib.get_close_matches(wrong, sorted(known), 1, 0.7)
    return f" (perhaps {near[0]} is meant)" if near else ""


def _no_json() -> list[str]:
    """The variables that must hold JSON (mappings, and lists of them) and do not."""
    found = []
    given = {name.upper(): text for name, text in os.environ.items()}
    for key in keys():
        section, name = key.split(".")
        field, variable = _sections()[section].model_fields[name], PREFIX + key.replace(".", "__").upper()
        if variable in given and get_origin(field.annotation) in (dict, tuple) and NoDecode not in field.metadata:
            try:
                json.loads(given[variable])
            except ValueError:
                found.append(f"{key}: must be JSON in the environment. Correct it in the environment variable {variable}.")
    return found


def _variable(fault: ErrorDetails) -> str:
    return PREFIX + "__".join(str(part) for part in fault["loc"][:2]).upper()


_PLAIN = {
    "tuple_type": "must be a list, such as [a, b]",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_too_short": "must not be empty",
    "time_parsing": 'must be a time of day, such as "21:00"',
    "date_from_datetime_parsing": "must be a day, such as 2026-12-01",
    "date_parsing": "must be a day, such as 2026-12-01",
}
"""What the library says in its own words, in ours, by its name for the fault."""


def _line(fault: ErrorDetails, file: str) -> str:
    key = ".".join(str(part) for part in fault["loc"][:2])
    variable = _variable(fault)
    from_environment = any(name.upper() == variable for name in os.environ)
    where = f"the environment variable {variable}" if from_environment else file
    if fault["type"] == "extra_forbidden" and len(fault["loc"]) > 2:
        whole = ".".join(str(part) for part in fault["loc"])
        return f"{whole}: no such key. Remove it from {where}, or correct its name."
    if fault["type"] == "extra_forbidden":
        known = set(keys()) if "." in key else set(_sections())
        return f"{key}: no such key{_guess(key, known)}. Remove it from {where}, or correct its name."
    if fault["type"] == "dict_type" and from_environment:
        return f"{key}: must be JSON in the environment. Correct it in {where}."
    if fault["type"] in ("model_type", "dict_type", "model_attributes_type"):
        return f"{key}: must be a section with keys below it. Correct it in {where}."
    if fault["type"] == "missing":
        return f"{'.'.join(str(part) for part in fault['loc'])}: is missing. Add it in {where}."
    inner = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    words = _PLAIN.get(fault["type"]) or (
        fault["msg"]
        .removeprefix("Value error, ")
        .replace("Input should be", "must be")
        .replace("String should", "must")
        .replace("Tuple should", "must")
        .replace(" after validation", "")
        .replace("a valid ", "a ")
        .replace("a integer", "a whole number")
        .replace("a string", "a text")
    )
    words = re.sub(r", unable to parse.*|, got a number with a fractional part", "", words)
    if fault["type"] == "value_error" and "." not in key:
        return words  # a rule between keys names its key and remedy itself
    return f"{inner}: {words}. Correct it in {where}."


def _one_line(faults: list[str]) -> str:
    first = " ".join(faults[0].split())
    return first if len(faults) == 1 else f"{first} (and {len(faults) - 1} more)"


def _key(setting: str, variable: str) -> str | None:
    if not variable:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(
            f"model.{setting}: the environment variable {variable} is not set. Set it to the key, "
            f"or empty model.{setting} for an endpoint without a key."
        )
    return key


def _persona(name: str, home: Path) -> Persona:
    file = home / Path(name).expanduser() if name else persona.DEFAULT
    if not file.is_file():
        raise ConfigError(
            f"persona.file: {file} does not exist. Correct the path, or empty persona.file for the persona that comes along."
        )
    try:
        return Persona(**read_yaml(file))
    except ValidationError as error:
        faults = [
            f"persona.file: {'.'.join(map(str, fault['loc']))}: {_persona_fault(fault)}. Correct it in {file.name}."
            for fault in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise ConfigError(_one_line(faults)) from error


def _persona_fault(fault: ErrorDetails) -> str:
    words = {"extra_forbidden": "no such key", "missing": "is missing", **_PLAIN}.get(fault["type"])
    return words or fault["msg"].removeprefix("Value error, ").replace("Input should", "must").replace("String should", "must")
