"""Default profiles by the keys that are set, and advice on how to get a better model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

from roost.core.failures.faults import Fault
from roost.errors import BrainFailed
from roost.ports import Profile

KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
}
"""Variables with the keys of providers, the best known first."""
MODELS: Mapping[str, str] = {
    "anthropic": "anthropic:claude-sonnet-5",
    "openai": "openai:gpt-5-mini",
    "google": "google:gemini-flash-latest",
    "openrouter": "openrouter:openai/gpt-5-mini",
}
"""Default models of providers."""


def has_key() -> bool:
    """Return whether a key of any provider is set."""
    return any(os.environ.get(key) for names in KEYS.values() for key in names)


def found() -> list[Profile]:
    """Return a profile for each provider whose key is set; none without the extra that they need."""
    if not has_key() or find_spec("pydantic_ai") is None:
        return []
    return [of_provider(name) for name, keys in KEYS.items() if any(os.environ.get(key) for key in keys)]


def of_provider(name: str) -> Profile:
    """Return the profile of a provider whose key is set."""
    return Profile(name, "llm", f"A model of {name}; its key was found.", MODELS[name])


def better() -> str:
    """Return advice on how to use a model of a provider."""
    install = "" if find_spec("pydantic_ai") else "pip install 'roost[llm]', "
    return f"{install}set {', '.join(names[0] for names in list(KEYS.values())[:-1])} or another key, and start again"


def named(profile: Profile) -> tuple[str, str]:
    """Return the provider and the name of its model."""
    name, _, model = (profile.model or "").partition(":")
    if not name or not model:
        advice = 'set `model` in the settings as "provider:name", such as "openai:gpt-5-mini"'
        raise BrainFailed(f"{profile.model!r} is not a model", kind=Fault.MODEL, advice=advice)
    return name, model


def key_of(profile: Profile) -> str | None:
    """Return the key of a profile; raise BrainFailed if it needs one that is not set."""
    name, _ = named(profile)
    if profile.key:
        if not (value := os.environ.get(profile.key)):
            raise _no_key(profile.key)
        return value
    if profile.base_url:
        return None  # never send the provider's key to another host
    names = KEYS.get(name, ())
    if names and not any(os.environ.get(variable) for variable in names):
        raise _no_key(names[0])
    return next((os.environ[variable] for variable in names if os.environ.get(variable)), None)


def _no_key(name: str) -> BrainFailed:
    advice = f"set {name} in the environment or in secrets.toml, and start Roost again"
    return BrainFailed(
        f"{name} is set neither in the environment nor in secrets.toml", kind=Fault.NO_KEY, advice=advice
    )
