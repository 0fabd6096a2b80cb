"""User B with user A's ids: not found, everywhere, and not to be told from an id that never existed (T10).

The matrix is made from the OpenAPI schema and from the service's methods, so that a new one can't be forgotten.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import roost
from roost.api.app import create_app
from roost.api.auth import Identity
from roost.client import AsyncRemoteService, RemoteService, connect
from roost.protocol.namespaces import methods
from roost.settings import Settings
from roost.sync import NAMESPACES
from tests.api.serving import SECRET, Served
from tests.conftest import Open

NEVER = "talk_00000000000000000000000"
LEAST: dict[str, str | int] = {"string": "x", "integer": 1}
"""A value of each type on the wire."""
METHODS = [
    name
    for name, method in inspect.getmembers(roost.AgentService, inspect.isfunction)
    if not name.startswith("_") and "talk_session_id" in inspect.signature(method).parameters
]
WITH_USER = {
    name
    for name, method in inspect.getmembers(roost.AgentService, inspect.isfunction)
    if "user_id" in inspect.signature(method).parameters
}


def routes(schema: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Every route that takes the id of a talk: (method, path, a body that is valid)."""
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            if "{talk_id}" in path:
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
                yield method, path, None if body is None else example(body, schema)


def example(body: dict[str, Any], schema: dict[str, Any]) -> dict[str, str | int]:
    """The least that fits: every required field, all of which are texts or numbers."""
    name = (body.get("$ref") or body["anyOf"][0]["$ref"]).rpartition("/")[2]
    found = schema["components"]["schemas"][name]
    return {field: LEAST[found["properties"][field]["type"]] for field in found.get("required", [])}


def test_every_route_with_an_id_answers_a_stranger_as_if_it_never_existed(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot", title="Mine")
    served.service.add_message("ann", talk, "hello")
    with served.browser("bob") as bob:
        found = list(routes(bob.get("/api/v1/openapi.json").json()))
        assert len(found) >= 7
        for method, path, body in found:
            answers = [bob.request(method, path.replace("{talk_id}", talk_id), json=body) for talk_id in (talk, NEVER)]
            assert [answer.status_code for answer in answers] == [404, 404], (method, path)
            assert answers[0].json() == answers[1].json()
        assert bob.get("/api/v1/talks").json() == {"items": [], "next": None}
        before = [bob.get("/api/v1/talks", params={"before": talk_id}) for talk_id in (talk, NEVER)]
        assert before[0].json() == before[1].json()
    assert served.service.get_session("ann", talk).title == "Mine"


def test_every_route_without_an_id_is_known_here(served: Served) -> None:
    app = create_app(served.service, Settings(), Identity(SECRET, "local"), pages=False)
    without = {(m, path) for path, found in app.openapi()["paths"].items() for m in found if "{" not in path}
    known = [one for name, kind in NAMESPACES.items() for one in methods(name, kind)]
    namespaces = {(one.route.verb.lower(), f"/api/v1/{one.path}") for one in known if "{" not in one.path}
    assert namespaces < without  # see test_namespaces.py
    assert without - namespaces == {
        ("get", "/api/v1/talks"),
        ("post", "/api/v1/talks"),
        ("post", "/api/v1/talks/search"),
        ("post", "/api/v1/talks/import"),
        ("post", "/api/v1/attachments"),
        ("get", "/api/v1/mail/stream"),
        ("get", "/api/v1/monitor/stream"),
        ("get", "/api/v1/profiles"),
        ("get", "/api/v1/me"),
        ("get", "/api/v1/health"),
        ("post", "/api/v1/links"),
        ("get", "/healthz"),
        ("get", "/readyz"),
        ("get", "/metrics"),
        ("get", "/api/v1/metrics"),
        ("post", "/v1/chat/completions"),  # see test_talks.py of openai
        ("get", "/v1/models"),
    }


def test_every_route_needs_a_signed_in_user(served: Served) -> None:
    with served.browser(None) as nobody:
        schema = nobody.get("/api/v1/openapi.json").json()
        for path, operations in schema["paths"].items():
            for method in operations:
                if path.startswith(("/api/", "/v1/")):
                    answer = nobody.request(method, re.sub(r"\{\w+\}", NEVER, path), json={}).json()
                    code = answer["code"] if path.startswith("/api/") else answer["error"]["code"]
                    assert code == ("unauthenticated" if path.startswith("/api/") else "invalid_api_key"), path


def call(service: roost.AgentService | RemoteService | roost.AsyncAgentService, name: str, talk: str) -> Any:
    """Call a method as bob, with the least it takes; a stream is read, a coroutine awaited."""
    method: Callable[..., Any] = getattr(service, name)
    needed = {
        parameter.name: 1 if parameter.annotation == "int" else "x"
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty and parameter.name not in ("user_id", "talk_session_id")
    }
    result = method("bob", talk_session_id=talk, **needed)
    if inspect.isawaitable(result):
        return asyncio.run(_awaited(result))
    if hasattr(result, "__aiter__"):
        return asyncio.run(_read(result))
    return list(result) if isinstance(result, Iterator) else result


async def _awaited(result: Any) -> Any:
    return await result


async def _read(stream: Any) -> list[Any]:
    return [change async for change in stream]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_with_an_id_answers_a_stranger_as_if_it_never_existed(service: Open, name: str) -> None:
    own = service()
    talk = own.create_talk_session("ann", profile="echo")
    own.add_message("ann", talk, "hello")
    for side in (own, own.asynchronous):
        sentences = set()
        for talk_id in (talk, NEVER):
            with pytest.raises(roost.NotFound) as refusal:
                call(side, name, talk_id)
            sentences.add(str(refusal.value))
        assert len(sentences) == 1
    assert own.get_session("ann", talk).talk_session_id == talk


@pytest.mark.parametrize("name", METHODS)
def test_the_client_answers_a_stranger_in_the_same_way(served: Served, name: str) -> None:
    talk = served.service.create_talk_session("ann", profile="echo")
    with connect(served.url, served.identity.token) as remote:
        for talk_id in (talk, NEVER):
            with pytest.raises(roost.NotFound, match="no such talk"):
                call(remote, name, talk_id)


def test_all_faces_have_the_same_methods_with_the_same_parameters() -> None:
    assert {"add_message", "get_messages", "stream_messages", "stop", "delete"} <= set(METHODS) <= WITH_USER
    for name in [*WITH_USER, "profiles", "health", "close"]:
        plain = inspect.signature(getattr(roost.AgentService, name)).parameters
        for side in (roost.AsyncAgentService, RemoteService, AsyncRemoteService):
            other = inspect.signature(getattr(side, name)).parameters
            assert [(p.name, p.default, p.kind) for p in plain.values()] == [
                (p.name, p.default, p.kind) for p in other.values()
            ], (side, name)
