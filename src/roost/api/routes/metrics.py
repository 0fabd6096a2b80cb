"""Metrics for Prometheus, readable only on this machine and for the local user."""

from __future__ import annotations

import ipaddress

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from roost.api.auth import Identity
from roost.api.routes.dependencies import User, is_operator
from roost.api.routes.rest import PREFIX, PROBLEMS
from roost.errors import Forbidden
from roost.protocol import prometheus
from roost.protocol.metrics import MetricList
from roost.service import AgentService

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers added by proxies: the client is then on another machine, although the connection is local."""


def add(app: FastAPI, service: AgentService, identity: Identity, *, behind_proxy: bool = False) -> None:
    """Add the routes. Behind a proxy, every client may seem to be a program on this machine."""

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Return metrics of the process in the format of Prometheus; only for this machine and the local user."""
        if not (is_operator(request, identity) or (_is_here(request) and not behind_proxy)):
            raise Forbidden("metrics are for the local user and programs on this machine: send the local token")
        told = service.asynchronous.monitor.own_metrics()
        return Response(prometheus.text(told.values()), media_type=prometheus.CONTENT_TYPE)

    @app.get(f"{PREFIX}/metrics", responses=PROBLEMS)
    async def numbers(user: User, request: Request) -> MetricList:
        """Return the metrics of all nodes as JSON, summed and by node; only for the local user."""
        if not is_operator(request, identity):
            raise Forbidden("metrics are for the local user: send the local token")
        return MetricList.of(await service.asynchronous.monitor.metrics())


def _is_here(request: Request) -> bool:
    """Return whether a program on this machine asks. Browsers do not count: a visitor's page must not read metrics."""
    if any(name in request.headers for name in (*FORWARDED, "cookie", "origin", "sec-fetch-site")):
        return False
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
