"""Every method of `/rpc` for callers that must not call it; made from the declarations, so that none is forgotten.

Another user with somebody's ids is in tests/api/test_strangers.py.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from roost.api.rpc import agent_control
from roost.api.rpc.methods import rpc_name
from roost.core.accounts.tokens import NOUNS
from tests.api.rpc.connection import Client
from tests.api.serving import METHODS, Served
from tests.api.test_tokens import arguments, created
from tests.conftest import eventually

PARAMS_OF_CLIENTS: dict[str, dict[str, Any]] = {
    "async.createAgent": {"agentId": "x"},
    "async.sleepAgent": {"agentId": "d"},
    "async.sendTask": {"agentId": "d", "prompt": "x"},
    "async.scheduleTask": {"agentId": "d", "task": "x", "schedule": "* * * * *"},
    "async.sendMail": {"to": "agent:d", "body": "x"},
    "async.publishEvent": {"event": "x"},
    "async.getAgentStates": {},
}


def with_token(served: Served, secret: str) -> Connection:
    headers = {"Authorization": f"Bearer {secret}"}
    return connect(served.url.replace("http", "ws") + "/rpc", additional_headers=headers, proxy=None)


def everything_of(served: Served, user: str) -> list[Any]:
    service = served.service
    return [
        service.agents.list(user),
        service.tasks.list(user),
        service.list_sessions(user),
        service.schedules.list(user),
    ]


def test_every_method_refuses_a_token_without_its_scope_and_does_nothing(served: Served) -> None:
    served.service.agents.create("ann", "d", start=False)
    before = everything_of(served, "ann")
    by_scope: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for name, method in METHODS.items():
        by_scope[method.scope][rpc_name(method)] = arguments(name)
    for name, scope in agent_control.SCOPES.items():
        by_scope[scope][name] = PARAMS_OF_CLIENTS[name]
    for scope, methods in by_scope.items():
        noun, _, action = scope.partition(":")
        lacking = [*(one for one in NOUNS if one != noun), f"*:{'write' if action == 'read' else 'read'}"]
        with with_token(served, created(served, *lacking)) as socket:
            client = Client(socket)
            for name, params in methods.items():
                error = client.ask(name, **params)["error"]
                assert (error["code"], error["data"]["code"]) == (403, "forbidden"), name
                assert scope in error["message"], name
    assert everything_of(served, "ann") == before


def test_connections_are_refused_alike_for_every_reason(served: Served) -> None:
    revoked = served.service.tokens.create("ann", "revoked")
    served.service.tokens.revoke("ann", revoked.token.token_id)
    expired = created(served, expires_in=0.001)
    reasons: list[dict[str, str]] = [
        {"Authorization": f"Bearer {revoked.secret}"},
        {"Authorization": f"Bearer {expired}"},
        {"Authorization": "Bearer roost_" + "x" * 43},
        {"Authorization": "Basic YW5uOng="},
        {"Origin": "http://evil.example"},
        {"Cookie": f"{served.identity.cookie_name}=forged"},
    ]
    eventually(lambda: _refusal(served, reasons[1]))
    assert len({_refusal(served, headers) for headers in reasons} - {None}) == 1
    assert all(_refusal(served, headers) for headers in reasons)


def _refusal(served: Served, headers: dict[str, str]) -> tuple[int, bytes] | None:
    cookie = {"Cookie": f"{served.identity.cookie_name}={served.identity.cookie('ann')}"} if "Origin" in headers else {}
    try:
        connect(served.url.replace("http", "ws") + "/rpc", additional_headers=cookie | headers, proxy=None).close()
    except InvalidStatus as refused:
        return refused.response.status_code, bytes(refused.response.body or b"")
    return None


def test_a_token_in_the_address_signs_nobody_in(served: Served) -> None:
    """A token in a URL would be in logs and in histories."""
    for name in ("token", "access_token", "authorization"):
        with pytest.raises(InvalidStatus):
            connect(f"{served.url.replace('http', 'ws')}/rpc?{name}={created(served)}", proxy=None)
