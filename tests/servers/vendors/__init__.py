"""Vendors' endpoints as they are documented and reported: what each refuses, with which words, and what it adds to its answers.

    async with ScriptedModel(script, habits=Mistral()) as model: ...

`ALL` has one of each. The rules are in `rules`, what they share in `base`; the hosted ones in `hosted`, the local ones in `local`.
"""

from __future__ import annotations

from tests.servers.vendors.base import Vendor
from tests.servers.vendors.hosted import (
    XAI,
    Anthropic,
    Azure,
    Cloudflare,
    DeepSeek,
    Gemini,
    Gpt5,
    Groq,
    Kimi,
    Mistral,
    OpenAIChat,
    OpenRouter,
    OSeries,
)
from tests.servers.vendors.local import (
    VLLM,
    LlamaCpp,
    LlamaCppGemma2,
    LlamaCppMinistral,
    LlamaCppWithoutJinja,
    LMStudio,
    Ollama,
    VLLMGemma,
    VLLMMistral,
)

__all__ = ["ALL", "Vendor"]

ALL: tuple[Vendor, ...] = (
    OpenAIChat(),
    OSeries(),
    Gpt5(),
    Azure(),
    Anthropic(),
    Gemini(),
    Mistral(),
    DeepSeek(),
    Kimi(),
    Groq(),
    OpenRouter(),
    XAI(),
    Cloudflare(),
    Ollama(),
    LMStudio(),
    VLLM(),
    VLLMMistral(),
    VLLMGemma(),
    LlamaCpp(),
    LlamaCppMinistral(),
    LlamaCppGemma2(),
    LlamaCppWithoutJinja(),
)
