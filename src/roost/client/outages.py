"""Servers that are away: which responses say so, and how long to try again."""

from __future__ import annotations

import json
import logging
import random
import time

import httpx2

from roost.client.network import Network
from roost.errors import Forbidden, Invalid, RoostError, Unavailable
from roost.protocol.errors import error_from

log = logging.getLogger("roost.client")

PATIENCE = 30.0
"""Seconds for which a server may be away, by default: long enough for a restart."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
NOTED = 2.0
"""Seconds after which an outage is logged: shorter ones are usual."""
AWAY = frozenset({502, 503, 504})
"""Statuses of a server that restarts, and of a proxy in front of it."""


class ServerAway(httpx2.TransportError):
    """Response of a server that cannot answer now, as `error`."""

    def __init__(self, error: RoostError) -> None:
        super().__init__(str(error))
        self.error = error


class Outage:
    """Time for which the server is away, from the first failed attempt on."""

    def __init__(self, network: Network, patience: float, url: str) -> None:
        self._network = network
        self._url = url
        self._patience = patience
        self._since: float | None = None
        self._number = 0
        self._is_noted = False

    def over(self) -> None:
        self._since, self._number, self._is_noted = None, 0, False

    async def pause(self) -> bool:
        """Wait before the next attempt, with exponential backoff and jitter; return False if it has lasted too long."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= self._patience:
            return False
        self._note(now - self._since)
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._number)
        self._number = min(self._number + 1, 10)
        await self._network.sleep(random.uniform(0.5, 1.0) * longest)
        return True

    def _note(self, lasted: float) -> None:
        """Say once why nothing happens, so that nobody waits for a wrong URL without knowing it."""
        if lasted < NOTED or self._is_noted:
            return
        self._is_noted = True
        rest = self._patience - lasted
        log.warning("cannot reach the server at %s; trying again for %.0f s", self._url, rest)


def raised_for(status: int, data: bytes) -> RoostError | ServerAway:
    """Return what to raise for a response; ServerAway if a later attempt may succeed."""
    problem = _problem(data)
    error = error_in(status, data)
    return ServerAway(error) if status in AWAY or (status >= 500 and problem is None) else error


def error_in(status: int, data: bytes) -> RoostError:
    """Return the error of a response."""
    if (problem := _problem(data)) is None:
        return Unavailable(f"the server returned status {status}: try again, or see its log")
    code, message = problem
    if status in (401, 403):
        return Forbidden(message)
    if status in (400, 413, 422):
        return Invalid(message)
    return error_from(code, message)


def _problem(data: bytes) -> tuple[str, str] | None:
    """Return code and sentence of problem details."""
    try:
        problem = json.loads(data)
        return str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
