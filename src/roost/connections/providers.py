"""Providers whose keys can be connected, and one short request that tests a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roost.brains.defaults import KEYS
from roost.connections.bounded_http import NoReply, ReplyRefused, get_json
from roost.errors import Invalid, Unavailable

TIMEOUT = 10.0
"""Seconds for the reply of a provider."""
_KEY = re.compile(r"[!-~]{8,500}")


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """Provider: its name for people, where keys are made, and a URL that only answers to a valid key."""

    name: str
    label: str
    page: str
    url: str
    headers: Callable[[str], dict[str, str]]
    wrong: tuple[int, ...] = (401, 403)
    """Statuses that say that the key is not valid."""

    @property
    def variable(self) -> str:
        return KEYS[self.name][0]


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _anthropic(key: str) -> dict[str, str]:
    return {"x-api-key": key, "anthropic-version": "2023-06-01"}


def _google(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key}


PROVIDERS: Mapping[str, ProviderInfo] = {
    one.name: one
    for one in (
        ProviderInfo(
            "anthropic",
            "Anthropic",
            "https://console.anthropic.com/settings/keys",
            "https://api.anthropic.com/v1/models",
            _anthropic,
        ),
        ProviderInfo(
            "openai", "OpenAI", "https://platform.openai.com/api-keys", "https://api.openai.com/v1/models", _bearer
        ),
        ProviderInfo(
            "google",
            "Google",
            "https://aistudio.google.com/apikey",
            "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1",
            _google,
            (400, 401, 403),
        ),
        ProviderInfo(
            "openrouter", "OpenRouter", "https://openrouter.ai/keys", "https://openrouter.ai/api/v1/key", _bearer
        ),
    )
}


def cleaned(key: str) -> str:
    """Return a key without the space around it. Raise Invalid, without the key, if it cannot be one."""
    key = key.strip()
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'":
        key = key[1:-1].strip()
    if not _KEY.fullmatch(key):
        raise Invalid("this is not a key: a key has 8 to 500 letters, digits and signs, and no spaces or line breaks")
    return key


def try_key(provider: ProviderInfo, key: str, *, timeout: float = TIMEOUT) -> None:
    """Send one short request with the key. Raise Invalid if it is refused, Unavailable if that cannot be known."""
    try:
        get_json(provider.url, provider.headers(key), seconds=timeout)
    except ReplyRefused as error:
        if error.status in provider.wrong:
            raise Invalid(f"{provider.label} refuses this key: check that it is complete and still valid") from None
        if error.status != 429:  # too many requests with this key, so it is valid
            raise Unavailable(
                f"{provider.label} cannot test the key now (status {error.status}): try again later"
            ) from None
    except NoReply:
        raise Unavailable(f"{provider.label} cannot be reached: check the network, then try again") from None
