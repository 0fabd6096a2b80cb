"""Poster over HTTP. A name is resolved once, its addresses are checked, and the request goes to one of them.

So a name that changes its address in between leads nowhere else.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

from roost.core.webhooks.networks import Address, NetworkPolicy, host_of
from roost.ports import PostResult

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class HttpPoster:
    """Poster on the loop that calls it."""

    def __init__(self, policy: NetworkPolicy, resolve: Resolve | None = None) -> None:
        self._policy = policy
        self._resolve = resolve or _addresses

    def check(self, url: object) -> str:
        return self._policy.check_url(url)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> PostResult:
        try:
            async with asyncio.timeout(seconds):
                return await self._post(url, headers, body)
        except TimeoutError:
            return PostResult(error=f"no reply within {seconds:g} s")

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        from roost.outbound import http_request  # only for webhooks: it is slow to import

        scheme, host, port = host_of(url)
        try:
            names = await self._resolve(host, port)
            found = [ipaddress.ip_address(name.partition("%")[0]) for name in names]
        except (OSError, ValueError) as error:  # also a name that is too long
            return PostResult(error=http_request.reason_of(error))
        if (problem := self._problem(scheme, found)) is not None:
            return PostResult(error=problem)
        return await http_request.post(url, host, str(found[0]), headers, body)

    def _problem(self, scheme: str, found: Sequence[Address]) -> str | None:
        """Return why no request is sent: one bad address is enough, since any of them may be used."""
        if not found:
            return "the host has no address"
        return next((why for one in found if (why := self._policy.problem(scheme, one)) is not None), None)


async def _addresses(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))
