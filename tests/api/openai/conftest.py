"""Fixtures: the official client, for the local user."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.api.openai.clients import client_of
from tests.api.serving import Served


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with client_of(served) as client:
        yield client
