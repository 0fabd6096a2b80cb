"""Configuration of uvicorn, with limits of connections, TLS, and trusted proxies."""

from __future__ import annotations

import logging
import resource
from collections.abc import Collection
from functools import partial
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from roost.api.limits.connections import ConnectionRegistry, RegisteredHttp
from roost.api.security import PEER
from roost.api.tls import Certificate
from roost.settings import Settings

log = logging.getLogger("roost.api")

HEAD = 64 * 1024
"""Bytes of a request line with its headers."""
BACKLOG = 256
MOST_DESCRIPTORS = 65_536


def config(app: FastAPI, settings: Settings, certificate: Certificate | None = None) -> uvicorn.Config:
    """Return uvicorn's configuration; `app.state.connections` is the registry of connections."""
    limits, trusted = settings.limits, settings.proxies
    app.state.connections = connections = ConnectionRegistry(limits, trusted)
    tls = certificate.context if certificate else None
    return uvicorn.Config(
        behind(app, trusted),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        backlog=BACKLOG,
        http=partial(RegisteredHttp, registry=connections, tls=tls),  # type: ignore[arg-type]
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # its buffers are larger than all others, and frames could not be shared
        ws_ping_timeout=None,  # a slow client answers late: the registry aborts those that make no progress
        ws_max_size=limits.message_bytes * 2 + 1024 * 1024,
        h11_max_incomplete_event_size=HEAD,
        proxy_headers=False,
    )


def behind(app: ASGIApp, trusted: Collection[str]) -> ASGIApp:
    """Return the application behind these proxies: they tell the address and the scheme of a client."""
    forwarded: Any = ProxyHeadersMiddleware(cast(Any, app), list(trusted)) if trusted else app  # types of uvicorn

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        scope[PEER] = (scope.get("client") or ("",))[0]  # before it is replaced by that of the client
        await forwarded(scope, receive, send)

    return serve


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files up to the hard limit; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        log.warning("cannot raise the limit of open files, which stays at %s: %s", soft, error)
        return soft
    return wanted
