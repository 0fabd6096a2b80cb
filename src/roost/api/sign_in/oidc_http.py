"""Requests to the identity provider: over TLS, within a time, and with bounded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from roost.errors import Unavailable
from roost.oidc_settings import is_loopback

TIMEOUT = 10.0
MOST_BYTES = 1024 * 1024


def checked_url(url: object, what: str) -> str:
    """Return a URL of the provider. Raise Unavailable if it is not one that is reached over TLS."""
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or not parts.hostname:
        raise Unavailable(f"the identity provider has no {what}: check oidc.issuer in the settings")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise Unavailable(f"the {what} of the identity provider is not reached over https")
    return parts.geturl()


async def get_json(url: str) -> dict[str, Any]:
    return await _json(httpx2.Request("GET", url, headers={"Accept": "application/json"}))


async def post_form(url: str, form: Mapping[str, str], auth: tuple[str, str] | None) -> dict[str, Any]:
    async with _client(url) as client:
        request = client.build_request("POST", url, data=dict(form), headers={"Accept": "application/json"})
        return await _read(client, request, auth)


async def _json(request: httpx2.Request) -> dict[str, Any]:
    async with _client(str(request.url)) as client:
        return await _read(client, request, None)


def _client(url: str) -> httpx2.AsyncClient:
    # A proxy of the environment is used for other machines only.
    local = is_loopback(urlsplit(url).hostname or "")
    return httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False, trust_env=not local)


async def _read(client: httpx2.AsyncClient, request: httpx2.Request, auth: tuple[str, str] | None) -> dict[str, Any]:
    place = request.url.host
    try:
        response = await client.send(request, stream=True, auth=auth or httpx2.USE_CLIENT_DEFAULT)
        try:
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MOST_BYTES:
                    raise Unavailable(f"the answer of the identity provider {place} is too large")
        finally:
            await response.aclose()
    except httpx2.HTTPError as error:
        raise Unavailable(f"the identity provider {place} does not answer: try again in a moment") from error
    if response.status_code != 200:
        raise Unavailable(f"the identity provider {place} has refused the request (status {response.status_code})")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unavailable(f"the answer of the identity provider {place} is not valid")
    return found
