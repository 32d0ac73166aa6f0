"""The sections of the configuration about what is kept: the notice of the first contact, sensitive things, and for how long."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from bot.keeping.decision import Sensitive
from bot.sections import Section

Days = Annotated[int, Field(ge=0, le=36_500)]

NOTICE = {
    "en": "By the way: I remember what we talk about, to know you better over time. `/memory view` shows what I know, `/memory pause` stops it, "
    "`/memory forget everything` erases it.",
    "de": "Übrigens: Ich merke mir, worüber wir sprechen, um dich mit der Zeit besser zu kennen. `/memory view` zeigt, was ich weiß, `/memory pause` "
    "hält es an, `/memory forget everything` löscht alles.",
    "fr": "Au fait : je retiens ce dont nous parlons, pour mieux te connaître avec le temps. `/memory view` montre ce que je sais, `/memory pause` "
    "l'arrête, `/memory forget everything` efface tout.",
    "es": "Por cierto: recuerdo lo que hablamos, para conocerte mejor con el tiempo. `/memory view` muestra lo que sé, `/memory pause` lo detiene, "
    "`/memory forget everything` lo borra todo.",
    "pt": "A propósito: eu me lembro do que conversamos, para te conhecer melhor com o tempo. `/memory view` mostra o que sei, `/memory pause` para, "
    "`/memory forget everything` apaga tudo.",
    "it": "A proposito: ricordo ciò di cui parliamo, per conoscerti meglio col tempo. `/memory view` mostra quello che so, `/memory pause` lo ferma, "
    "`/memory forget everything` cancella tutto.",
}  # fmt: skip


class Consent(Section):
    """What people are told when they first talk to the bot."""

    notice: dict[str, str] = Field(default_factory=lambda: dict(NOTICE))
    workspaces: dict[str, dict[str, str]] = Field(default_factory=dict)

    @field_validator("workspaces", mode="before")
    @classmethod
    def _named(cls, workspaces: object) -> object:
        return {str(name): texts for name, texts in workspaces.items()} if isinstance(workspaces, dict) else workspaces

    @field_validator("notice")
    @classmethod
    def _english(cls, notice: dict[str, str]) -> dict[str, str]:
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


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class Keeping(Section):
    """What the agent may store."""

    sensitive: Annotated[tuple[Sensitive, ...], NoDecode, BeforeValidator(_listed)] = get_args(Sensitive)
    answer_hours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 24
    judge: Literal["words", "model"] = "words"


class Retention(Section):
    """For how many days what is kept; 0: until the person erases it."""

    messages: Days = 0
    quotes: Days = 30
    archival: Days = 0
    documents: Days = 0
    timers: Days = 90
    deliveries: Days = 30
    events: Days = 90
    usage: Days = 400
    log: Days = 0
    erasures: Days = 400
    left_workspaces: Days = 30
