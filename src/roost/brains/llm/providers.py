"""From a profile to a model that can be asked: whose it is, where, with which key, and how much it can read."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, get_args

import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.settings import ModelSettings

from roost.brains.defaults import key_of, named
from roost.core.faults import Fault
from roost.errors import BrainFailed
from roost.ports import Profile

WINDOW = 32_000
"""Tokens that a model is taken to read of which nothing is known."""
OLLAMA_WINDOW = 4_096
"""What Ollama gives a model that does not ask for more."""
OLLAMA = "http://localhost:11434/v1"
CONNECT = 10.0
"""Seconds in which somebody must be there; to what is said then applies the profile's patience."""
WITH_CLIENT = ("openai", "openai-chat", "openai-responses", "anthropic", "google", "openrouter", "ollama")
"""Providers that are asked with our client, and so with its patience."""
NOWHERE = "http://localhost"
CERTIFICATES = httpx2.create_ssl_context()
"""Made once, when this module is loaded on a thread of its own: reading all the certificates takes a while."""


def prepare(profile: Profile) -> None:
    """Load all that it takes to ask this provider: it takes long, so it is done on a thread of its own.

    Raises BrainFailed if it is clear already that it cannot be asked.
    """
    key_of(profile)
    window_of(profile)
    client = httpx2.AsyncClient(verify=CERTIFICATES, timeout=profile.patience)
    with suppress(BrainFailed, UserError):  # told when it is asked
        for url in (NOWHERE, None):
            model, _ = made(replace(profile, base_url=url, key=None), client)
            if type(model).__name__ == "OpenAIResponsesModel":
                _build_events()


@lru_cache(maxsize=1)
def _build_events() -> None:
    """What OpenAI's library would build with the first chunk, for half a second of the loop's time or more."""
    from openai.types.responses import ResponseStreamEvent

    for event in get_args(get_args(ResponseStreamEvent)[0]):
        event.model_rebuild()


def place_of(profile: Profile) -> tuple[str | float | None, ...]:
    """What decides where a model is asked, as whom and how. Raises BrainFailed if it is clear that it cannot be."""
    return profile.model, profile.base_url, key_of(profile), profile.patience


def patience_of(profile: Profile) -> httpx2.Timeout:
    """How long a client waits."""
    return httpx2.Timeout(profile.patience, connect=min(CONNECT, profile.patience))


def made(profile: Profile, client: httpx2.AsyncClient) -> tuple[Model, Provider[Any]]:
    """The model of a profile, to be asked with this client, and its provider."""
    name, model = named(profile)
    provider = _provider(name, profile, client)
    if name == "openai" and profile.base_url:
        name = "openai-chat"  # what others speak who speak as OpenAI does
    return infer_model(f"{name}:{model}", lambda _: provider), provider


def settings_of(profile: Profile, most: int | None) -> ModelSettings:
    """What is asked of the model beside the words."""
    # No retries of theirs: ours can be stopped, and know whether anything was said.
    chosen = ModelSettings(max_retries=0)
    if named(profile)[0] not in WITH_CLIENT:
        chosen["timeout"] = profile.patience
    if profile.temperature is not None:
        chosen["temperature"] = profile.temperature
    if profile.thinking is not None:
        chosen["thinking"] = False if profile.thinking == "off" else profile.thinking  # type: ignore[typeddict-item]
    if most is not None:
        chosen["max_tokens"] = most
    return chosen


def window_of(profile: Profile) -> int:
    """How many tokens the model can read."""
    return profile.window or _window(profile.model or "")


def _provider(name: str, profile: Profile, client: httpx2.AsyncClient) -> Provider[Any]:
    url, key = profile.base_url, key_of(profile)
    given: dict[str, Any] = {"http_client": client}
    match name:
        case "openai" | "openai-chat" | "openai-responses" if url:
            from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

            return OpenAICompatibleProvider("openai-compatible", base_url=url, api_key=key or "none", **given)
        case "openai" | "openai-chat" | "openai-responses":
            from pydantic_ai.providers.openai import OpenAIProvider

            return OpenAIProvider(api_key=key, **given)
        case "anthropic":
            from pydantic_ai.providers.anthropic import AnthropicProvider

            place = url.removesuffix("/").removesuffix("/v1") if url else None
            return AnthropicProvider(api_key=key or "none", base_url=place, **given)
        case "google":
            return _google(url, key or "none", client)
        case "openrouter":
            from pydantic_ai.providers.openrouter import OpenRouterProvider

            return OpenRouterProvider(api_key=key or "none", **given)
        case "ollama":
            from pydantic_ai.providers.ollama import OllamaProvider

            return OllamaProvider(url or os.environ.get("OLLAMA_BASE_URL") or OLLAMA, key or "none", **given)
    return _other(name)


def _google(url: str | None, key: str, client: httpx2.AsyncClient) -> Provider[Any]:
    """With our certificates: left to itself, it reads all of them anew, and holds up the loop meanwhile."""
    from google.genai import Client
    from google.genai.types import HttpOptions
    from pydantic_ai.providers.google import GoogleProvider

    silence = int((client.timeout.read or CONNECT) * 1_000)
    certificates = {"verify": CERTIFICATES, "ssl": CERTIFICATES}
    options = HttpOptions(
        base_url=url, httpx_async_client=client, timeout=silence, client_args={"verify": CERTIFICATES},
        async_client_args=certificates,
    )  # fmt: skip
    return GoogleProvider(client=Client(vertexai=False, api_key=key, http_options=options))


def _other(name: str) -> Provider[Any]:
    """One that only pydantic-ai knows: it finds the key, and names the variable that it should be in."""
    try:
        return infer_provider(name)
    except UserError as error:
        raise BrainFailed(str(error), kind=Fault.NO_KEY, advice=f"{error}".split("\n")[0]) from None
    except (ValueError, ImportError) as error:
        advice = f"{name!r} is no provider that is known here: correct `model` in the settings"
        raise BrainFailed(str(error), kind=Fault.MODEL, advice=advice) from None


@lru_cache(maxsize=256)
def _window(model: str) -> int:
    """By what is known of its price and size, else by where it runs."""
    from genai_prices import data_snapshot

    provider, _, name = model.partition(":")
    if provider == "ollama":
        return OLLAMA_WINDOW
    try:
        _, known = data_snapshot.get_snapshot().find_provider_model(name, None, provider.split("-")[0], None)
    except LookupError:
        return WINDOW
    return known.context_window or WINDOW
