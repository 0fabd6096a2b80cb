"""Limits of requests: their rate per user and per address, and the size of their bodies."""

from __future__ import annotations

from time import monotonic

from starlette.types import Message, Receive

from roost.api.error_responses import HttpError
from roost.api.limits.body_memory import SHARES, BodyAllocation, BodyMemory
from roost.api.limits.rate_limits import Nodes, RateLimit
from roost.core.limits.limits import Limits
from roost.protocol.errors import TOO_FAST

LARGEST_ESCAPE = 6
"""Largest factor by which JSON escapes lengthen a character."""
SLACK = 64 * 1024
CHARGED = 256 * 1024
"""Bytes of a body that count as one more request in rate limits."""
UPLOADS = "/api/v1/attachments"
"""Path whose bodies are files."""


def most_bytes(limits: Limits) -> int:
    """Return the size of the largest body that can hold a valid message."""
    return limits.message_bytes * LARGEST_ESCAPE + SLACK


class RequestLimits:
    """Limits of all requests of this process. A request without a user counts for its address.

    `nodes`: the nodes of a cluster, which share the rates.
    """

    def __init__(self, limits: Limits, nodes: Nodes = lambda: 1) -> None:
        self._most = most_bytes(limits)
        self._most_of_file = limits.attachment_bytes + SLACK
        per_user, per_address = limits.requests_per_second, limits.address_requests_per_second
        self._users = RateLimit(monotonic, per_user, limits.request_burst, nodes)
        self._addresses = RateLimit(monotonic, per_address, limits.address_request_burst, nodes)
        self._bodies = BodyMemory(max(limits.bodies_mib * 1024 * 1024, max(self._most, self._most_of_file) * SHARES))

    # --- rates -------------------------------------------------------------------------------------

    def count(self, address: str, user: str | None) -> None:
        """Count a request. Raise HttpError if there were too many."""
        # Addresses are limited too: a client can become a new user with each request.
        self.count_address(address)
        self.count_user(address, user)

    def count_address(self, address: str) -> None:
        if not self._addresses.admits(address):
            raise _too_many()

    def count_user(self, address: str, user: str | None) -> None:
        if not self._users.admits(_key(user, address)):
            raise _too_many()

    def charge(self, address: str, user: str | None, size: int) -> None:
        """Count a large body as several requests, since reading it takes as long."""
        if size >= CHARGED:
            for rates, key in ((self._addresses, address), (self._users, _key(user, address))):
                rates.charge(key, size // CHARGED)

    # --- bodies ------------------------------------------------------------------------------------

    def check_length(self, path: str, length: str | None) -> None:
        """Raise HttpError if the announced length of a body is too large."""
        if int_or_zero(length) > (most := self._most_bytes(path)):
            raise _too_large(path, most)

    def body(self, address: str, user: str | None) -> BodyAllocation:
        """Return the memory of one body; `end` frees it."""
        return self._bodies.body(_key(user, address))

    def bounded(self, path: str, receive: Receive, body: BodyAllocation) -> Receive:
        """Limit the size of a body while it is received, and of all bodies together."""
        most = self._most_bytes(path)

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                fits = body.grow(len(message.get("body", b"")))
                if body.size > most:
                    raise _too_large(path, most)
                if not fits:
                    raise HttpError(503, "unavailable", "too many large requests at once: try again in a moment")
            return message

        return receiving

    def _most_bytes(self, path: str) -> int:
        return self._most_of_file if path == UPLOADS else self._most


def _key(user: str | None, address: str) -> str:
    return user or f"address {address}"


def _too_many() -> HttpError:
    return HttpError(429, "limit_reached", TOO_FAST)


def _too_large(path: str, most: int) -> HttpError:
    if path == UPLOADS:
        most_of_file = (most - SLACK) / 1_000_000
        return HttpError(413, "too_large", f"the file is too large: at most {most_of_file:.1f} MB can be sent")
    return HttpError(413, "too_large", f"the body is too large: the limit is {most:,} bytes")


def int_or_zero(text: str | None) -> int:
    return int(text[:20]) if text and text.isascii() and text.isdigit() else 0  # h11 accepts no more digits
