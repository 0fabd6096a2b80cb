"""One request over HTTP to an address that was checked. Each has a connection of its own, and follows no redirects."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from functools import cache
from socket import gaierror

import httpx2

from roost.ports import PostResult

log = logging.getLogger("roost.outbound")

REPLY_BYTES = 4 * 1024
"""Bytes of a reply that are read, if it is no success."""


async def post(url: str, host: str, address: str, headers: Mapping[str, str], body: bytes) -> PostResult:
    """Send a request for `host` to `address`; its certificate must be that of the host."""
    try:
        target = httpx2.URL(url)
        named = {**headers, "host": target.netloc.decode("ascii")}
        # Proxies of the environment are not used: they would resolve the name again.
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(verify=_tls(), trust_env=False, limits=limits, timeout=None) as client:
            request = client.build_request(
                "POST",
                target.copy_with(host=address),
                headers=named,
                content=body,
                extensions={"sni_hostname": host},
            )
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                return await _result(response)
            finally:
                await response.aclose()
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        return PostResult(error=reason_of(error))


def reason_of(error: Exception) -> str:
    """Return an error in one sentence, without the URL."""
    causes = _causes(error)
    if any(isinstance(one, gaierror) for one in causes):
        return "the name of the host could not be resolved"
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in causes):
        return "the certificate of the host is not valid"
    if isinstance(error, httpx2.ConnectError):
        return "no connection to the host"
    if isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.WriteError):
        return "the host closed the connection, or its reply was not HTTP"
    return f"the request failed: {type(error).__name__}"


def _causes(error: BaseException) -> list[BaseException]:
    found = [error]
    while (cause := found[-1].__cause__ or found[-1].__context__) is not None and len(found) < 10:
        found.append(cause)
    return found


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _result(response: httpx2.Response) -> PostResult:
    if response.is_success:
        return PostResult(response.status_code)
    read = bytearray()
    try:
        async for piece in response.aiter_raw():
            read += piece
            if len(read) >= REPLY_BYTES:
                break
    except httpx2.HTTPError:
        log.debug("the body of a reply was cut off")  # its status counts
    return PostResult(response.status_code, reply=bytes(read[:REPLY_BYTES]).decode(errors="replace"))
