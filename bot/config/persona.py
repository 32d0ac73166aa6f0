"""The persona: who the bot is, as the operator wrote it down. The agent may not rewrite it."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT = Path(__file__).parent.parent / "prompts" / "persona.yaml"


class Emergency(BaseModel):
    """What the bot says, word for word, when something serious comes up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: str = Field(min_length=1, max_length=300)
    say: str = Field(min_length=1, max_length=1000)
    kind: Literal["harm", "other"] = "other"
    """`harm`: given by the bot itself, at once, when somebody speaks of harming themselves; where no entry says so, the first is."""


class Persona(BaseModel):
    """The operator's file, checked. The lengths keep the fixed part of the prompt small."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=60)
    character: str = Field(min_length=1, max_length=2000)
    tone: str = Field(default="", max_length=1000)
    limits: tuple[str, ...] = Field(default=(), max_length=20)
    languages: tuple[str, ...] = Field(default=(), max_length=20)
    emergency: tuple[Emergency, ...] = Field(default=(), max_length=10)

    @property
    def care(self) -> tuple[str, ...]:
        """What is said when somebody speaks of harming themselves."""
        chosen = [line for line in self.emergency if line.kind == "harm"] or self.emergency[:1]
        return tuple(line.say.strip() for line in chosen)

    @property
    def text(self) -> str:
        """The persona section of the working context, in words for the model."""
        parts = [f"Your name is {self.name}.", self.character.strip()]
        if self.tone:
            parts.append(f"Tone: {self.tone.strip()}")
        if self.languages:
            parts.append(
                f"You speak: {', '.join(self.languages)}. Answer in the language you are written to in, if it is one of these."
            )
        if self.limits:
            parts.append("Limits:\n" + "\n".join(f"- {limit.strip()}" for limit in self.limits))
        if self.emergency:
            lines = "\n".join(f"- When {line.when.strip()}, say: {line.say.strip()}" for line in self.emergency)
            parts.append(f"Emergencies, before anything else:\n{lines}")
        return "\n".join(parts)
