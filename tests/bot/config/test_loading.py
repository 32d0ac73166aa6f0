"""The configuration: each fault is one line that names the key and the remedy; every key is documented and can be overridden."""

import dataclasses
import json
import os
from datetime import time
from pathlib import Path

import pytest

from bot.app.runtime import engine_settings
from bot.config import loading as config
from bot.config.loading import ConfigError, load
from bot.config.sections import EngineSection
from bot.engine.settings import EngineSettings

ROOT = Path(__file__).parents[3]
EXAMPLES = {
    "data.folder": "elsewhere",
    "database.url": "postgresql://keepsake_bot@db/keepsake",
    "database.pool": "7",
    "redis.url": "redis://cache:6379/0",
    "model.base_url": "http://127.0.0.1:11434/v1",
    "model.api_key_env": "SOME_KEY",
    "model.chat": "llama",
    "model.summary": "small",
    "model.filter": "tiny",
    "model.embedding": "embed",
    "model.fallback": "spare",
    "model.fallback_url": "http://127.0.0.1:8000/v1",
    "model.fallback_key_env": "SOME_KEY",
    "model.calls": "schema",
    "model.size": "small",
    "model.timeout": "33",
    "model.temperature": "0.5",
    "model.extra": '{"seed": 7}',
    "context.budget": "9000",
    "context.reply_reserve": "700",
    "context.warning": "0.6",
    "context.flush": "0.9",
    "context.evict": "0.4",
    "context.fixed_limit": "0.5",
    "turn.passes": "5",
    "turn.memory_calls": "2",
    "turn.memory_writes": "1",
    "turn.seconds": "60",
    "turn.tokens": "5000",
    "budget.person_tokens": "1000",
    "budget.person_money": "0.5",
    "budget.bot_tokens": "9000",
    "budget.bot_money": "7",
    "budget.prices": '{"gpt": {"prompt": 1.0, "cached": 0.5, "completion": 4.0}}',
    "engine.debounce": "0.5",
    "engine.debounce_cap": "8",
    "engine.attempts": "2",
    "engine.give_up_hours": "3",
    "engine.concurrency": "4",
    "engine.shutdown_grace": "1",
    "model.sees_images": "True",
    "model.stream": "False",
    "model.image_tokens": "800",
    "model.image_bytes": "50000",
    "discord.streaming": "True",
    "discord.on_delete": "mark",
    "consent.notice": '{"en": "I remember."}',
    "consent.workspaces": '{"T1": {"en": "Here too."}}',
    "keeping.sensitive": "health,crime",
    "keeping.answer_hours": "12",
    "keeping.judge": "model",
    "retention.messages": "365",
    "retention.quotes": "7",
    "retention.archival": "365",
    "retention.documents": "365",
    "retention.timers": "9",
    "retention.deliveries": "9",
    "retention.events": "9",
    "retention.usage": "99",
    "retention.log": "99",
    "retention.erasures": "99",
    "retention.left_workspaces": "9",
    "persona.file": str(ROOT / "bot" / "prompts" / "persona.yaml"),
    "console.user": "ada",
    "discord.token_env": "OTHER_TOKEN",
    "discord.message_content": "True",
    "discord.members": "True",
    "discord.presences": "True",
    "discord.mentions": "False",
    "discord.replies": "False",
    "discord.threads": "False",
    "discord.places": '{"123": {"mentions": false, "replies": null, "threads": true}}',
    "discord.allow": "1,22",
    "discord.deny": "333",
    "discord.bots": "4",
    "discord.daily_limit": "50",
    "discord.context_messages": "5",
    "discord.attachment_bytes": "1000",
    "discord.catch_up_hours": "48",
    "discord.catch_up_messages": "10",
    "discord.join_channels": "55,66",
    "discord.login_events": "True",
    "discord.sharded": "True",
    "discord.shards": "0-1/4",
    "discord.silence": "30",
    "discord.restart_cap": "5",
    "discord.api_base": "https://discord.example.org/api/v10",
    "discord.gateway": "wss://gateway.example.org",
    "slack.bot_token_env": "OTHER_BOT_TOKEN",
    "slack.app_token_env": "OTHER_APP_TOKEN",
    "slack.signing_secret_env": "OTHER_SECRET",
    "slack.workspaces": '[{"bot_token_env": "BETA_TOKEN", "app_token_env": "BETA_APP", "signing_secret_env": ""}]',
    "slack.bind": "127.0.0.1:3000",
    "slack.public_url": "https://keepsake.example.org",
    "slack.client_id_env": "OTHER_CLIENT",
    "slack.client_secret_env": "OTHER_CLIENT_SECRET",
    "slack.command": "/other",
    "slack.mentions": "False",
    "slack.threads": "False",
    "slack.answer_in_thread": "False",
    "slack.places": '{"T1": {"mentions": null, "threads": false, "daily_limit": 3}}',
    "slack.allow": "T1,C22",
    "slack.deny": "C333",
    "slack.bots": "B4",
    "slack.strangers": "True",
    "slack.daily_limit": "50",
    "slack.context_messages": "5",
    "slack.attachment_bytes": "1000",
    "slack.streaming": "True",
    "slack.on_delete": "mark",
    "slack.prompts": "Hello,What now?",
    "slack.join_channels": "C55,C66",
    "slack.login_events": "True",
    "slack.silence": "30",
    "slack.refresh": "60",
    "slack.restart_cap": "5",
    "slack.api_base": "https://slack.example.org/api/",
    "openers.enabled": "True",
    "openers.ask": "May I?",
    "openers.ask_after": "3",
    "openers.quiet_from": "22:30:00",
    "openers.quiet_to": "07:00:00",
    "openers.daily_cap": "2",
    "openers.min_gap_hours": "10",
    "openers.stop_after": "3",
    "openers.active_minutes": "30",
    "openers.every_days": "5",
    "care.pause_hours": "24",
    "care.repeat_hours": "2",
    "care.second_voice": "False",
    "schedules.entries": '{"weekly": {"cron": "0 17 * * sun", "purpose": "Ask.", "grace_hours": 3.0}}',
    "welcome.text": "Welcome, {name}!",
    "access.operators": "console::ada,discord::42",
    "access.admins": '{"112233": ["42", "99"]}',
    "access.admins_see_direct": "2026-12-01",
    "log.level": "debug",
    "log.format": "json",
    "health.bind": "127.0.0.1:8080",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine reaches a test."""
    for name in list(os.environ):
        if name.upper().startswith("KEEPSAKE"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    return file


def fault(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, text))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_is_needed() -> None:
    loaded = load()
    assert loaded.rehearsal
    assert loaded.embedded
    assert loaded.data == Path.cwd() / "data"
    assert loaded.persona.name == "Mika"


def test_the_file_at_the_root_changes_nothing() -> None:
    assert load(ROOT / "config.yaml").config == load().config


def test_the_engine_has_no_defaults_beside_those_of_the_configuration() -> None:
    required = {field.name for field in dataclasses.fields(EngineSettings) if field.default is dataclasses.MISSING}
    chosen_elsewhere = {"patience"}  # as the turn's own
    assert required - chosen_elsewhere == {"burst", "burst_cap", "max_attempts", "give_up", "concurrency", "shutdown_grace"}
    chosen = EngineSection(debounce=1, debounce_cap=2, attempts=3, give_up_hours=4, concurrency=5, shutdown_grace=6)
    taken = engine_settings(chosen)
    assert (taken.burst, taken.burst_cap, taken.max_attempts, taken.give_up) == (1, 2, 3, 4 * 3600)
    assert (taken.concurrency, taken.shutdown_grace) == (5, 6)


def test_every_key_has_an_example_here() -> None:
    assert set(EXAMPLES) == set(config.keys())


@pytest.mark.parametrize("key", config.keys())
def test_every_key_can_be_overridden_by_the_environment(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAKE__" + key.replace(".", "__").upper(), EXAMPLES[key])
    if key.startswith("model."):
        monkeypatch.setenv("KEEPSAKE__MODEL__CHAT", EXAMPLES["model.chat"])
        monkeypatch.setenv("SOME_KEY", "secret")
    if key.endswith("_money"):
        monkeypatch.setenv("KEEPSAKE__BUDGET__PRICES", EXAMPLES["budget.prices"])
    section, name = key.split(".")
    found = load().config.model_dump(mode="json")[section][name]
    if isinstance(found, dict) or (isinstance(found, list) and isinstance(found[0], dict)):
        found = json.dumps(found)
    shown = ",".join(found) if isinstance(found, list) else str(found)
    assert shown.removesuffix(".0") == EXAMPLES[key]


@pytest.mark.parametrize(
    ("text", "key", "remedy"),
    [
        ("modle:\n  chat: a\n", "modle: no such key (perhaps model is meant)", "correct its name"),
        ("model:\n  chta: a\n", "model.chta: no such key (perhaps model.chat is meant)", "correct its name"),
        ("model:\n  timeout: soon\n", "model.timeout: must be a number", "Correct it in config.yaml"),
        ("model:\n  chat: [a]\n", "model.chat: must be a text", "Correct it"),
        ("model: gpt\n", "model: must be a section", "Correct it"),
        ("model:\n  calls: maybe\n", "model.calls: must be 'auto', 'native' or 'schema'", "Correct it"),
        ("model:\n  base_url: localhost\n  chat: a\n", "model.base_url: must be an address", "http://"),
        ("model:\n  chat: a\n  extra: {messages: []}\n", "model.extra: must not set messages", "Correct it"),
        ("model:\n  base_url: http://x/v1\n", "model.chat: is empty", "Name the chat model"),
        ("model:\n  api_key_env: MISSING\n  chat: a\n", "model.api_key_env", "MISSING is not set"),
        ("model:\n  api_key_env: sk-123/45\n  chat: a\n", "model.api_key_env", "never the key itself"),
        ("database:\n  url: mysql://x\n", "database.url", "postgresql://"),
        ("redis:\n  url: http://x\n", "redis.url", "redis://"),
        ("database:\n  url: 'postgresql://[::1/x'\n", "database.url: is no address", "@HOST:PORT/DATABASE"),
        ("database:\n  url: postgresql://h/x?foo=bar\n", "database.url: is no address", "@HOST:PORT/DATABASE"),
        ("redis:\n  url: redis://h:abc/0\n", "redis.url: is no address", "@HOST:PORT/NUMBER"),
        ("redis:\n  url: redis://h/0?foo=bar\n", "redis.url: is no address", "@HOST:PORT/NUMBER"),
        ("model:\n  base_url: 'http://[::1/v1'\n  chat: a\n", "model.base_url: must be an address", "http://"),
        ("model:\n  base_url: http://h:99999/v1\n  chat: a\n", "model.base_url: must be an address", "http://"),
        ("slack:\n  public_url: https://h:abc\n", "slack.public_url: must be an address", "https://"),
        ("data:\n  folder: ~nobody-of-this-name/x\n", "data.folder: must be a path; there is no such home", "Correct it"),
        ("persona:\n  file: ~nobody-of-this-name/x\n", "persona.file: must be a path", "Correct it"),
        ('data:\n  folder: "a\\0b"\n', "data.folder: must be a path without control", "Correct it"),
        ("model:\n  chat: 2026-13-45\n", "line 2 is no valid YAML (no such day", "between quotes"),
        ("model: &a {chat: *a}\n", "config.yaml: is nested without end", "Write it without"),
        ("context:\n  warning: 1.5\n", "context.warning: must be less than or equal to 1", "Correct it"),
        ("context:\n  warning: .nan\n", "context.warning: must be", "Correct it"),
        ("context:\n  warning: 0.9\n  flush: 0.8\n", "context.warning: must be below context.flush", "Lower"),
        ("context:\n  budget: 2000\n  reply_reserve: 1500\n", "context.reply_reserve", "Lower it"),
        ("turn:\n  passes: 0\n", "turn.passes: must be greater than or equal to 1", "Correct it"),
        ("turn:\n  passes: 1.5\n", "turn.passes: must be a whole number", "Correct it"),
        ("engine:\n  debounce: 9\n", "engine.debounce_cap", "Raise it"),
        ("persona:\n  file: nowhere.yaml\n", "persona.file", "does not exist"),
        ("discord:\n  token_env: MTk4.G0.secret\n", "discord.token_env", "never the token itself"),
        ("discord:\n  allow: [home]\n", "discord.allow", "must be Discord's ids"),
        ("slack:\n  bot_token_env: xoxb-12-34\n", "slack.bot_token_env", "never the token itself"),
        ("slack:\n  workspaces: [{app_token_env: A}]\n", "slack.workspaces.0.bot_token_env", "is missing"),
        ("slack:\n  workspaces: ACME\n", "slack.workspaces: must be a list", "Correct it"),
        ("slack:\n  command: keepsake\n", "slack.command: must be a slash", "/keepsake"),
        ("slack:\n  deny: [general]\n", "slack.deny.0: must be Slack's ids", "C024BE91L"),
        ("slack:\n  places: {C0: {mentions: maybe}}\n", "slack.places.C0.mentions: must be true or false", "Correct it"),
        ("slack:\n  prompts: [a, b, c, d, e]\n", "slack.prompts: must have at most 4 items, not 5", "Correct it"),
        ("slack:\n  bind: '3000'\n", "slack.bind: must be host:port", "Socket Mode"),
        ("openers:\n  quiet_from: 25\n", "openers.quiet_from: must be a time of day", '"21:00"'),
        ("openers:\n  quiet_from: noon\n", "openers.quiet_from: must be a time of day", '"21:00"'),
        ("schedules:\n  entries: {sun: {cron: '0 17 * *', purpose: x}}\n", "schedules.entries.sun.cron: must be five", "0 18"),
        ("schedules:\n  entries: {sun: {cron: '0 17 * * sun'}}\n", "schedules.entries.sun.purpose: is missing", "Add it"),
        (
            "schedules:\n  entries: {Sun day: {cron: '0 17 * * sun', purpose: x}}\n",
            "must be named by small letters",
            "Correct it",
        ),
        ("care:\n  second_voice: perhaps\n", "care.second_voice: must be true or false", "Correct it"),
        ("welcome:\n  text: 'Hi {nme}'\n", "welcome.text: may hold {name}", "Correct it"),
        ("consent:\n  notice: {de: Hallo}\n", "consent.notice: must have a text under `en`", "empty"),
        ("consent:\n  workspaces: {T1: {de: Hallo}}\n", "consent.workspaces: must have a text under `en`", "empty"),
        ("keeping:\n  sensitive: [helth]\n", "keeping.sensitive.0: must be 'health'", "Correct it"),
        ("retention:\n  mesages: 3\n", "retention.mesages: no such key (perhaps retention.messages", "correct its name"),
        ("access:\n  admins: {'1': '2'}\n", "access.admins.1: must be a list", "Correct it"),
        ("access:\n  admins_see_direct: soon\n", "access.admins_see_direct: must be a day", "2026-12-01"),
        ("discord:\n  places: {1: {mention: true}}\n", "discord.places.1.mention: no such key", "correct its name"),
        ("discord:\n  gateway: http://example.org\n", "discord.gateway", "wss://"),
        ("console:\n  user: a b\n", "console.user", "without blanks"),
        ("access:\n  operators: [ada]\n", "access.operators", "platform:realm:user"),
        ("health:\n  bind: here\n", "health.bind", "host:port"),
        ("log:\n  level: loud\n", "log.level", "must be 'debug'"),
        ("model:\n  chat: a\n  chat: b\n", "model.chat appears twice", "line 3"),
        ("model: [\n", "line 2 is no valid YAML", "Correct it there"),
        ("- a\n", "config.yaml: must hold", "See the config.yaml"),
    ],
)
def test_each_fault_names_the_key_and_the_remedy(text: str, key: str, remedy: str, tmp_path: Path) -> None:
    said = fault(tmp_path, text)
    assert key in said
    assert remedy in said


def test_an_hour_without_quotes_is_that_hour(tmp_path: Path) -> None:
    openers = load(written(tmp_path, "openers:\n  quiet_from: 21:30\n  quiet_to: 9\n")).config.openers
    assert (openers.quiet_from, openers.quiet_to) == (time(21, 30), time(9))


def test_several_faults_are_the_first_and_a_count(tmp_path: Path) -> None:
    assert fault(tmp_path, "turn:\n  passes: 0\nlog:\n  level: loud\n").endswith("(and 1 more)")


@pytest.mark.parametrize(
    "name", ["KEEPSAKE__MODEL__CHTA", "KEEPSAKE__MODEL", "keepsake__nothing__at", "KEEPSAKE__MODEL__CHAT__MORE"]
)
def test_an_environment_name_that_matches_no_key_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(ConfigError, match=f"^{name}: no such key.*Unset this environment variable"):
        load()


def test_a_wrong_value_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAKE__TURN__PASSES", "many")
    with pytest.raises(ConfigError, match=r"turn\.passes: .*environment variable KEEPSAKE__TURN__PASSES"):
        load()


@pytest.mark.parametrize("key", [key for key, example in EXAMPLES.items() if example[0] in "{["])
def test_a_variable_that_is_no_json_is_named(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "KEEPSAKE__" + key.replace(".", "__").upper()
    monkeypatch.setenv(variable, '{"a":')
    with pytest.raises(ConfigError, match=rf"^{key}: must be JSON.*environment variable {variable}\.$"):
        load()


def test_no_fault_quotes_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = fault(tmp_path, "model:\n  api_key_env: 'sk secret'\n  timeout: hunter2\ndatabase:\n  url: x://u:hunter2@h\n")
    assert "secret" not in said
    assert "hunter2" not in said
    monkeypatch.setenv("KEEPSAKE__DATABASE__URL", "hunter2")
    with pytest.raises(ConfigError) as caught:
        load()
    assert "hunter2" not in str(caught.value)


def test_a_named_file_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "none.yaml")
    monkeypatch.setenv("KEEPSAKE_CONFIG", str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match="no such file"):
        load()


def test_keepsake_data_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "data:\n  folder: here\n")
    assert load(file).data == tmp_path / "here"
    monkeypatch.setenv("KEEPSAKE_DATA", str(tmp_path / "there"))
    assert load(file).data == tmp_path / "there"


def test_a_key_alone_means_openai(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    loaded = load(written(tmp_path, "model:\n  api_key_env: MY_KEY\n  chat: gpt\n"))
    assert (loaded.model_url, loaded.key, loaded.rehearsal) == ("https://api.openai.com/v1", "secret", False)


def test_an_empty_section_is_its_defaults(tmp_path: Path) -> None:
    assert load(written(tmp_path, "model:\n")).config.model.timeout == 120


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("character: kind\n", "persona.file: name: is missing"),
        ("name: A\ncharacter: b\nmood: c\n", "persona.file: mood: no such key"),
        ("name: A\ncharacter: b\nemergency:\n- when: x\n", "persona.file: emergency.0.say: is missing"),
        ("name: A\ncharacter: b\nemergency:\n- {when: x, say: y}\n", "persona.file: emergency.0: names nothing by which"),
        ("name: A\ncharacter: b\nlanguages: English\n", "persona.file: languages: must be a list"),
    ],
)
def test_a_wrong_persona_is_a_line_too(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(text)
    assert said in fault(tmp_path, "persona:\n  file: p.yaml\n")


@pytest.mark.parametrize(
    ("given", "reserve"),
    [
        ("budget: 4000", 500),
        ("budget: '4000'", 500),
        ("budget: 16000", 1500),
        ("budget: 4000\n  reply_reserve: 800", 800),
        ("warning: 0.6", 1500),
    ],
)
def test_a_small_budget_keeps_an_eighth_for_the_answer(given: str, reserve: int, tmp_path: Path) -> None:
    assert load(written(tmp_path, f"context:\n  {given}\n")).config.context.reply_reserve == reserve


def test_the_persona_in_words(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "name: Nora\ncharacter: Kind.\nlimits: [Never lie.]\nemergency: [{when: it burns, words: [fire], say: Run!}]\n"
    )
    text = load(written(tmp_path, "persona:\n  file: p.yaml\n")).persona.text
    assert text == "Name: Nora\nKind.\nLimits:\n- Never lie.", "and no line for emergencies: models recite those"
