"""Receiver of webhooks in a simulation: it notes requests, and answers or fails by a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from roost.core.webhooks.networks import LOOPBACK, NetworkPolicy
from roost.ports import PostResult


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """Request of a webhook."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class FakeReceiver:
    """Poster for tests. `answer` decides about each request; a status of 0 is a request without a reply in time."""

    answer: Callable[[ReceivedRequest], int] = lambda _: 200
    delay: float = 0.01
    """Seconds that a request takes."""
    requests: list[ReceivedRequest] = field(default_factory=list)

    def check(self, url: object) -> str:
        return NetworkPolicy.of(LOOPBACK).check_url(url)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> PostResult:
        request = ReceivedRequest(url, dict(headers), body)
        self.requests.append(request)
        status = self.answer(request)
        await asyncio.sleep(self.delay if status else seconds)
        return PostResult(status) if status else PostResult(error=f"no reply within {seconds:g} s")
