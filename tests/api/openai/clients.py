"""The official client against a server of the tests."""

from __future__ import annotations

import openai
from openai.types.chat import ChatCompletionMessageParam

from tests.api.serving import Served

USER = "local"
"""The user of the local token."""


def client_of(served: Served, *, token: str | None = None, retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key=token or served.identity.token, max_retries=retries)


def said(*texts: str) -> list[ChatCompletionMessageParam]:
    """Messages of a user and an assistant in turn; the first one is the user's."""
    found: list[ChatCompletionMessageParam] = []
    for number, text in enumerate(texts):
        if number % 2:
            found.append({"role": "assistant", "content": text})
        else:
            found.append({"role": "user", "content": text})
    return found
