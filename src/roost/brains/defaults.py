"""Who thinks when nothing is configured: the best there is, and how to get a better one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

from roost.ports import Profile

KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
}
"""The variables that hold the keys of providers, the best known first."""
MODELS: Mapping[str, str] = {
    "anthropic": "anthropic:claude-sonnet-5",
    "openai": "openai:gpt-5-mini",
    "google": "google:gemini-flash-latest",
    "openrouter": "openrouter:openai/gpt-5-mini",
}
"""The model that is asked there, if nobody says which."""


def has_key() -> bool:
    """Whether a key of any provider is set."""
    return any(os.environ.get(key) for names in KEYS.values() for key in names)


def found() -> list[Profile]:
    """A profile for each provider whose key is set; none without the extra that they need."""
    if not has_key() or find_spec("pydantic_ai") is None:
        return []
    return [
        Profile(name, "llm", f"A model of {name}; its key was found.", MODELS[name])
        for name, keys in KEYS.items()
        if any(os.environ.get(key) for key in keys)
    ]


def better() -> str:
    """What to do for a model of a provider."""
    install = "" if find_spec("pydantic_ai") else "pip install 'roost[llm]', "
    return f"{install}set {', '.join(names[0] for names in list(KEYS.values())[:-1])} or another key, and start again"
