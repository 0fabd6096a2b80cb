"""The client's tests use the API's real server, and both forms of the client: plain, and with coroutines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from roost.client import RemoteService, connect, outages
from tests.api.conftest import served, unchanged
from tests.api.serving import Served
from tests.client import looped

__all__ = ["served", "unchanged"]

Dial = Callable[..., AbstractContextManager[RemoteService]]


@pytest.fixture(params=["plain", "async"])
def dial(request: pytest.FixtureRequest) -> Dial:
    return connect if request.param == "plain" else looped.connect


@pytest.fixture
def remote(served: Served, dial: Dial) -> Iterator[RemoteService]:
    with dial(served.url, served.identity.token) as service:
        yield service


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "FIRST_PAUSE", 0.001)
