"""Poster: requests of webhooks to URLs of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PostResult:
    """Reply to a request, or the error if there was none."""

    status: int | None = None
    error: str | None = None
    """Error in one sentence for users; without secrets."""
    reply: str = ""
    """Start of the body of a reply that is no success."""

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Poster(Protocol):
    """Sender of requests. It follows no redirects, and reaches only the networks that its policy allows."""

    def check(self, url: object) -> str:
        """Return the URL; raise Invalid if no request would ever be sent to it. Resolves no names."""
        ...

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> PostResult:
        """Send a request and return its result after at most `seconds`. Raises nothing."""
        ...
