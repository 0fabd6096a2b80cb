"""Configuration of uvicorn, with limits of connections and of trusted proxies."""

from __future__ import annotations

import logging
import resource
from functools import partial

import uvicorn
from fastapi import FastAPI

from roost.api.limits.connections import ConnectionRegistry, RegisteredHttp
from roost.settings import Settings

log = logging.getLogger("roost.api")

HEAD = 64 * 1024
"""Bytes of a request line with its headers."""
BACKLOG = 256
MOST_DESCRIPTORS = 65_536


def config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Return uvicorn's configuration; `app.state.connections` is the registry of connections."""
    limits, trusted = settings.limits, settings.trusted_proxies
    app.state.connections = connections = ConnectionRegistry(limits, trusted)
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        backlog=BACKLOG,
        http=partial(RegisteredHttp, registry=connections),  # type: ignore[arg-type]
        ws="websockets-sansio",
        ws_max_size=limits.message_bytes * 2 + 1024 * 1024,
        h11_max_incomplete_event_size=HEAD,
        proxy_headers=bool(trusted),
        forwarded_allow_ips=list(trusted),
    )


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
