"""The sections of the configuration about what is kept: the notice of the first contact, sensitive things, and for how long."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from bot.config.sections import ConfigSection, listed

Days = Annotated[int, Field(ge=0, le=36_500)]
Sensitive = Literal["health", "sexuality", "religion", "politics", "ethnicity", "union", "crime", "finances", "biometrics"]
KINDS: tuple[Sensitive, ...] = get_args(Sensitive)


class ConsentSection(ConfigSection):
    """What people are told once, next to the first answer they get (not at the terminal)."""

    notice: dict[str, str] | None = None
    """The text by language, where it is not to be the bot's own, which it has in six. `en` is used for everyone whose language is
    unknown or not listed. `{}`: no notice."""
    workspaces: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Other texts for single workspaces, by the id of a Discord server or Slack workspace. `{}` for a workspace: no notice there.
    """

    @field_validator("workspaces", mode="before")
    @classmethod
    def _named(cls, workspaces: object) -> object:
        return {str(name): texts for name, texts in workspaces.items()} if isinstance(workspaces, dict) else workspaces

    @field_validator("notice")
    @classmethod
    def _english(cls, notice: dict[str, str] | None) -> dict[str, str] | None:
        if notice and "en" not in notice:
            raise ValueError(
                "must have a text under `en`, which everybody gets whose language is not there; or be empty for no notice"
            )
        return notice

    @field_validator("workspaces")
    @classmethod
    def _english_each(cls, workspaces: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        for texts in workspaces.values():
            cls._english(texts)
        return workspaces


class KeepingSection(ConfigSection):
    """What the agent may store of what people say."""

    sensitive: Annotated[tuple[Sensitive, ...], NoDecode, BeforeValidator(listed)] = get_args(Sensitive)
    """The kinds of sensitive things that are stored only after the person has said yes. `[]`: none."""
    answer_hours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 24
    """How long the person may take to say yes, in hours."""
    judge: Literal["words", "model"] = "words"
    """What judges whether something is worth keeping and whether it is sensitive: `words` (word lists in four languages) or `model`
    (`model.filter` is asked as well, which costs a small call whenever something is to be stored)."""


class RetentionSection(ConfigSection):
    """How many days things are kept. 0: until the person erases them. Expired things are erased in the background, a little at a
    time."""

    messages: Days = 0
    """Messages, in days."""
    quotes: Days = 30
    """What others said near a person (quoted, replied-to and forwarded messages), and what was stored of it, in days."""
    archival: Days = 0
    """Archival storage except documents, in days."""
    documents: Days = 0
    """Documents, in days."""
    timers: Days = 90
    """Timers that have fired or were cancelled, in days."""
    deliveries: Days = 30
    """Copies of delivered replies, in days."""
    events: Days = 90
    """Processed inbox entries (without their text) and dead letters, in days."""
    usage: Days = 400
    """What model calls cost, in days."""
    log: Days = 0
    """The text before and after each change of memory, in days. Without it a change cannot be undone; the fact that it was made is
    kept."""
    erasures: Days = 400
    """The record of erasures and of what people decided (keyed hashes), in days. Keep it at least as long as your backups, so that no
    backup brings anything back."""
    left_workspaces: Days = 30
    """What came from a workspace after the app was removed from it, in days. A workspace that is only unavailable never counts."""
