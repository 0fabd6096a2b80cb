"""The numbers for Prometheus, for whoever runs this machine."""

from __future__ import annotations

import ipaddress

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from roost.api.auth import Identity
from roost.api.door import LOCAL, USER
from roost.api.rest import FAULTS, PREFIX
from roost.api.users import User
from roost.errors import Forbidden
from roost.protocol import prometheus
from roost.protocol.metrics import MetricList
from roost.service import AgentService

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What a proxy adds: then whoever asks is not on this machine, although the connection is."""


def add(app: FastAPI, service: AgentService, identity: Identity) -> None:
    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Numbers about the whole program, as Prometheus reads them: for this machine and the local user."""
        if not (_is_operator(request, identity) or _is_here(request)):
            raise Forbidden("only the local user and programs on this machine read the metrics: send the token")
        told = await service.asynchronous.monitor.metrics()
        return Response(prometheus.text(told.values()), media_type=prometheus.CONTENT_TYPE)

    @app.get(f"{PREFIX}/metrics", responses=FAULTS)
    async def numbers(user: User, request: Request) -> MetricList:
        """The same numbers for programs: for the local user."""
        if not _is_operator(request, identity):
            raise Forbidden("only the local user reads the metrics: send the token")
        return MetricList.of((await service.asynchronous.monitor.metrics()).values())


def _is_operator(request: Request, identity: Identity) -> bool:
    return bool(request.scope.get(LOCAL)) or request.scope.get(USER) == identity.local_user


def _is_here(request: Request) -> bool:
    """Whether a program of this machine asks, and no browser: pages of a visitor see nothing of it."""
    if any(name in request.headers for name in (*FORWARDED, "cookie", "origin", "sec-fetch-site")):
        return False
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
