"""The persona: who the bot is, as the operator wrote it down. The agent may not rewrite it."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

DEFAULT = Path(__file__).parent.parent / "prompts" / "persona.yaml"


class Emergency(BaseModel):
    """What the bot itself says, word for word and at once, when something serious comes up. It stands in no prompt: models recite it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: str = Field(min_length=1, max_length=300)
    """For whoever reads the file; the code goes by `kind` and `words`."""
    say: str = Field(min_length=1, max_length=1000)
    kind: Literal["harm", "medical", "violence", "abuse", "other"] = "other"
    """What must be recognised: somebody speaks of harming themselves, of a medical emergency, of violence against others, of being
    mistreated."""
    words: tuple[str, ...] = Field(default=(), max_length=100)
    """Words and phrases that call for it too, whatever the kind."""

    @model_validator(mode="after")
    def _recognisable(self) -> Self:
        if self.kind == "other" and not any(word.strip() for word in self.words):
            raise ValueError(
                "names nothing by which its moment is recognised. Give kind (harm, medical, violence or abuse) or words."
            )
        return self


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
    def text(self) -> str:
        """Who the bot is, in words for the model: a description, as what addresses a small model is recited by it."""
        parts = [f"Name: {self.name}", self.character.strip()]
        if self.tone:
            parts.append(f"Tone: {self.tone.strip()}")
        if self.languages:
            parts.append(
                f"Languages: {', '.join(self.languages)}; answers in the one it is written to in, if it is one of these."
            )
        if self.limits:
            parts.append("Limits:\n" + "\n".join(f"- {limit.strip()}" for limit in self.limits))
        return "\n".join(parts)
