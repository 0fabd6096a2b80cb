"""Models from profiles: provider, URL, key and context window."""

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
from roost.core.failures.faults import Fault
from roost.errors import BrainFailed
from roost.ports import Profile

WINDOW = 32_000
"""Assumed context window of unknown models, in tokens."""
OLLAMA_WINDOW = 4_096
"""Ollama's default context window."""
OLLAMA = "http://localhost:11434/v1"
CONNECT = 10.0
"""Timeout of connecting in seconds; the profile's patience applies to the response."""
WITH_CLIENT = ("openai", "openai-chat", "openai-responses", "anthropic", "google", "openrouter", "ollama")
"""Providers that use our client, and so its timeouts."""
NOWHERE = "http://localhost"
CERTIFICATES = httpx2.create_ssl_context()
"""Created once, when this module is loaded on a thread: reading all certificates is slow."""


def prepare(profile: Profile) -> None:
    """Load the libraries of this provider; it takes long, so call it on a thread.

    Raises BrainFailed if the model clearly cannot be used.
    """
    key_of(profile)
    window_of(profile)
    client = httpx2.AsyncClient(verify=CERTIFICATES, timeout=profile.patience)
    with suppress(BrainFailed, UserError):  # raised again at the request
        for url in (NOWHERE, None):
            model, _ = made(replace(profile, base_url=url, key=None), client)
            if type(model).__name__ == "OpenAIResponsesModel":
                _build_events()


@lru_cache(maxsize=1)
def _build_events() -> None:
    """Build types that OpenAI's library would build at the first chunk, blocking the loop for half a second or more."""
    from openai.types.responses import ResponseStreamEvent

    for event in get_args(get_args(ResponseStreamEvent)[0]):
        event.model_rebuild()


def place_of(profile: Profile) -> tuple[str | float | None, ...]:
    """Return the endpoint, key and timeouts of a model; raise BrainFailed if it clearly cannot be used."""
    return profile.model, profile.base_url, key_of(profile), profile.patience


def patience_of(profile: Profile) -> httpx2.Timeout:
    """Return the timeouts of the client."""
    return httpx2.Timeout(profile.patience, connect=min(CONNECT, profile.patience))


def made(profile: Profile, client: httpx2.AsyncClient) -> tuple[Model, Provider[Any]]:
    """Return the model of a profile with this client, and its provider."""
    name, model = named(profile)
    provider = _provider(name, profile, client)
    if name == "openai" and profile.base_url:
        name = "openai-chat"  # the protocol of OpenAI-compatible servers
    return infer_model(f"{name}:{model}", lambda _: provider), provider


def settings_of(profile: Profile, most: int | None) -> ModelSettings:
    """Return the settings of a request."""
    # No retries by the library: ours can be stopped, and know whether there was output.
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
    """Return the context window of the model in tokens."""
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
    """Return Google's provider with our certificates: by default it reads all of them again, blocking the loop."""
    from google.genai import Client
    from google.genai.types import HttpOptions
    from pydantic_ai.providers.google import GoogleProvider

    silence = int((client.timeout.read or CONNECT) * 1_000)
    certificates = {"verify": CERTIFICATES, "ssl": CERTIFICATES}
    options = HttpOptions(
        base_url=url,
        httpx_async_client=client,
        timeout=silence,
        client_args={"verify": CERTIFICATES},
        async_client_args=certificates,
    )
    return GoogleProvider(client=Client(vertexai=False, api_key=key, http_options=options))


def _other(name: str) -> Provider[Any]:
    """Return another provider of pydantic-ai, which finds the key or names its variable."""
    try:
        return infer_provider(name)
    except UserError as error:
        raise BrainFailed(str(error), kind=Fault.NO_KEY, advice=f"{error}".split("\n")[0]) from None
    except (ValueError, ImportError) as error:
        advice = f"{name!r} is not a known provider: correct `model` in the settings"
        raise BrainFailed(str(error), kind=Fault.MODEL, advice=advice) from None


@lru_cache(maxsize=256)
def _window(model: str) -> int:
    """Return the window from the price list, or by the provider."""
    from genai_prices import data_snapshot

    provider, _, name = model.partition(":")
    if provider == "ollama":
        return OLLAMA_WINDOW
    try:
        _, known = data_snapshot.get_snapshot().find_provider_model(name, None, provider.split("-")[0], None)
    except LookupError:
        return WINDOW
    return known.context_window or WINDOW
