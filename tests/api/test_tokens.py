"""API tokens: they act for one user, within their scopes, until they expire or are revoked (S2)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from roost import client as roost_client
from roost.core.accounts.tokens import NOUNS
from roost.errors import Forbidden, Unavailable
from roost.hosts.pending import drive
from roost.ports import Tx
from tests.api.serving import METHODS, Served, ask, send
from tests.conftest import eventually

NEEDED: dict[str, Any] = {
    "content": "x",
    "seq": 1,
    "text": "x",
    "query": "x",
    "agentIds": ["x"],
    "key": "x",
    "state": {},
    "to": "agent:d",
    "prompt": "x",
    "agent": "d",
    "time": 4e9,
    "since": 1.7e9,
    "created": "2030-01-01T09:00:00Z",
    "subject": "x",
    "body": "x",
    "name": "x",
    "topic": "x",
    "move": 1,
    "who": "agent:d",
    "result": "x",
    "tool": "x",
    "after": "0",
    "title": "x",
    "role": "user",
    "url": "https://example.com/",
}


def client(served: Served, secret: str, **headers: str) -> httpx.Client:
    authorization = {"Authorization": f"Bearer {secret}"}
    return httpx.Client(base_url=served.url, headers=authorization | headers, trust_env=False, timeout=30)


def created(served: Served, *scopes: str, user: str = "ann", expires_in: float | None = None) -> str:
    return served.service.tokens.create(user, "test", scopes=scopes or ("*",), expires_in=expires_in).secret


def arguments(name: str) -> dict[str, Any]:
    """The least that a method takes, with an id that never was where it takes one."""
    method = METHODS[name]
    fields = method.params.model_json_schema()
    given = {field: NEEDED.get(field, "never") for field in fields.get("required", ())}
    return given | ({"timeout": 0} if method.has("timeout") else {})


def sessions_of_accounts(served: Served) -> dict[str, httpx.Client]:
    """Browsers whose session has ended, and one of a visitor from before there were accounts."""
    found = {"visitor": served.browser("user_before")}
    for name in ("disabled", "reset"):
        served.service.users.add("local", f"{name}-user")
        found[f"session of a {name} account"] = served.browser(f"{name}-user")
        {"disabled": served.service.users.disable, "reset": served.service.users.reset}[name]("local", f"{name}-user")
    return found


@pytest.fixture
def refused(served: Served) -> Iterator[dict[str, httpx.Client]]:
    """A client for each reason to be refused."""
    revoked = served.service.tokens.create("ann", "revoked")
    served.service.tokens.revoke("ann", revoked.token.token_id)
    expired = created(served, expires_in=0.001)
    secrets = {"revoked": revoked.secret, "expired": expired, "never": "roost_" + "x" * 43, "long": "x" * 5_000}
    clients = {name: client(served, secret) for name, secret in secrets.items()}
    clients["nobody"] = httpx.Client(base_url=served.url, trust_env=False)
    clients["local token of another server"] = client(served, "y" * 43)
    clients |= sessions_of_accounts(served)
    eventually(lambda: clients["expired"].get("/api/v1/profiles").status_code == 401)
    yield clients
    for one in clients.values():
        one.close()


def test_every_method_refuses_every_token_that_is_not_valid_alike(
    served: Served, refused: dict[str, httpx.Client]
) -> None:
    served.service.agents.create("ann", "d", start=False)
    before = served.service.agents.list("ann"), served.service.tasks.list("ann")
    for name, method in METHODS.items():
        answers = {reason: send(one, method, arguments(name)) for reason, one in refused.items()}
        assert {answer.status_code for answer in answers.values()} == {401}, name
        told = {(answer.json()["detail"], "Authorization" in refused[who].headers) for who, answer in answers.items()}
        assert len(told) == 2, (name, told)  # one sentence for tokens, and one for browsers
    assert (served.service.agents.list("ann"), served.service.tasks.list("ann")) == before


def test_every_method_refuses_a_token_without_its_scope_and_does_nothing(served: Served) -> None:
    served.service.agents.create("ann", "d", start=False)
    before = served.service.agents.list("ann"), served.service.tasks.list("ann"), served.service.tokens.list("ann")
    for name, method in METHODS.items():
        noun, _, action = method.scope.partition(":")
        others = [one for one in NOUNS if one != noun]
        lacking = [*others, f"*:{'write' if action == 'read' else 'read'}"]
        lacking += [f"{noun}:{'write' if action == 'read' else 'read'}"] if noun in NOUNS else []
        made = served.service.tokens.create("ann", "lacking", scopes=lacking)
        with client(served, made.secret) as one:
            answer = send(one, method, arguments(name))
        served.service.tokens.revoke("ann", made.token.token_id)
        assert (answer.status_code, method.scope in answer.json()["detail"]) == (403, True), (name, answer.text)
    after = served.service.agents.list("ann"), served.service.tasks.list("ann"), served.service.tokens.list("ann")
    assert after == before


def test_every_method_accepts_a_token_with_exactly_its_scope(served: Served) -> None:
    served.service.users.add("local", "ann", role="admin")
    for name, method in METHODS.items():
        scope = method.scope if method.namespace not in ("tokens", "users", "nodes") else "*"
        made = served.service.tokens.create("ann", "exact", scopes=[scope])
        with client(served, made.secret) as one:
            answer = send(one, method, arguments(name))
        assert answer.status_code not in (401, 403), (name, answer.text)
        if method.full_name != "tokens.revoke":
            served.service.tokens.revoke("ann", made.token.token_id)


def test_a_token_acts_for_its_owner_alone(served: Served) -> None:
    served.service.agents.create("bob", "his", start=False)
    with client(served, created(served)) as ann:
        assert ask(ann, "agents.create", agentId="hers", start=False).status_code == 201
        assert [one["agentId"] for one in ask(ann, "agents.list").json()["items"]] == ["hers"]
        assert ask(ann, "agents.get", agentId="his").status_code == 404
    with client(served, created(served), **{"Roost-User": "bob"}) as sly:
        answer = ask(sly, "agents.list")
        assert (answer.status_code, "for another user" in answer.text) == (403, True)
    with client(served, created(served, user="bob")) as bob:
        assert [one["agentId"] for one in ask(bob, "agents.list").json()["items"]] == ["his"]


def test_the_client_signs_in_with_a_token(served: Served) -> None:
    served.service.agents.create("ann", "d", start=False)
    with roost_client.connect(served.url, created(served, "agents:read")) as remote:
        assert [agent.agent_id for agent in remote.agents.list("ann")] == ["d"]
        with pytest.raises(Forbidden, match="for another user"):
            remote.agents.list("bob")
        with pytest.raises(Forbidden, match="agents:write"):
            remote.agents.create("ann", "e")


def test_the_recipes_of_the_guide_work(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.service.agents.create("ann", "d", start=False)
    page = (Path(__file__).parents[2] / "docs" / "guides" / "api-tokens.md").read_text(encoding="utf-8")
    secret = created(served, "agents:read")
    [sample] = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    exec(sample.replace("http://localhost:8501", served.url), {"token": secret})
    assert "agent_id='d'" in capsys.readouterr().out
    [(header, path)] = re.findall(r'^curl -H "Authorization: ([^"]*)" http://localhost:8501(\S+)$', page, re.MULTILINE)
    sent = {"Authorization": header.replace("$ROOST_TOKEN", secret)}
    found = httpx.get(served.url + path, headers=sent, trust_env=False).json()
    assert [one["agentId"] for one in found["items"]] == ["d"]


def test_what_is_no_method_needs_a_scope_too(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    body = {"model": "parrot", "messages": [{"role": "user", "content": "hello"}]}
    with client(served, created(served, "talks:read")) as reader, client(served, created(served, "mail")) as other:
        assert reader.get(f"/api/v1/talks/{talk}/stream").status_code == 200
        assert reader.get("/v1/models").status_code == 200
        assert reader.get("/api/v1/profiles").status_code == 200
        for one in (reader, other):
            assert one.post("/api/v1/attachments?name=a", content=b"x").status_code == 403
            assert one.post("/v1/chat/completions", json=body).status_code == 403
            assert one.post("/mcp", json={}).status_code == 403
            assert one.post("/api/v1/links").status_code == 403
            assert one.get("/api/v1/metrics").status_code == 403
        assert other.get(f"/api/v1/talks/{talk}/stream").status_code == 403
        assert other.get("/v1/models").status_code == 403
        for path in ("monitor/stream", "agents/d/stream", "meetings/m/stream"):
            assert other.get(f"/api/v1/{path}").status_code in (403, 404)
        with other.stream("GET", "/api/v1/mail/stream") as response:
            assert response.status_code == 200
    with client(served, created(served, "talks")) as writer:
        assert writer.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"] == "hello "


@pytest.mark.alone
def test_a_token_is_dead_on_open_connections_within_a_second(served: Served) -> None:
    made = served.service.tokens.create("ann", "long")
    headers = {"Authorization": f"Bearer {made.secret}"}
    address = served.url.replace("http", "ws") + "/rpc"
    with (
        connect(address, additional_headers=headers) as socket,
        client(served, made.secret) as http,
        http.stream("GET", "/api/v1/monitor/stream") as stream,
    ):
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "agent.list", "params": {}}))
        assert json.loads(socket.recv(timeout=30))["result"] == []
        began = time.monotonic()
        served.service.tokens.revoke("ann", made.token.token_id)
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        assert socket.close_code == 1008
        with pytest.raises(httpx.RemoteProtocolError):  # it is cut off
            list(stream.iter_bytes())
        assert time.monotonic() - began < 1.5
        assert ask(http, "agents.list").status_code == 401


def test_a_token_that_expires_is_dead_on_an_open_connection(served: Served) -> None:
    headers = {"Authorization": f"Bearer {created(served, expires_in=3600)}"}

    def expire(tx: Tx) -> None:
        tx.write("UPDATE tokens SET expires = :past", {"past": 1.0})

    async def expired() -> None:
        await served.service.roost.context.store.write(expire)

    with connect(served.url.replace("http", "ws") + "/rpc", additional_headers=headers) as socket:
        drive(expired())
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        assert socket.close_code == 1008


def test_json_rpc_checks_scopes_of_methods_and_subscriptions(served: Served) -> None:
    headers = {"Authorization": f"Bearer {created(served, 'agents:read', 'mail:read')}"}
    requests = {
        "agent.list": ({}, True),
        "agent.create": ({"agentId": "d"}, False),
        "async.createAgent": ({"agentId": "d"}, False),
        "async.sendTask": ({"agentId": "d", "prompt": "x"}, False),
        "async.getAgentStates": ({}, False),
        "talk.listSessions": ({}, False),
        "token.create": ({"name": "more"}, False),
        "subscribe": ({"topic": "mail"}, True),
    }
    with connect(served.url.replace("http", "ws") + "/rpc", additional_headers=headers) as socket:
        for name, (params, is_allowed) in requests.items():
            socket.send(json.dumps({"jsonrpc": "2.0", "id": name, "method": name, "params": params}))
            answer = json.loads(socket.recv(timeout=30))
            assert ("result" in answer) is is_allowed, answer
            assert is_allowed or answer["error"]["data"]["code"] == "forbidden"
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "subscribe", "params": {"topic": "monitor"}}))
        assert json.loads(socket.recv(timeout=30))["error"]["data"]["code"] == "forbidden"
    assert served.service.agents.list("ann") == []


@pytest.mark.parametrize("path", ["/", "/docs", "/api/v1/agents", "/api/v1/profiles", "/healthz"])
def test_a_token_never_becomes_a_cookie(served: Served, path: str) -> None:
    with client(served, created(served, "agents:read"), Accept="text/html") as ann:
        assert "set-cookie" not in ann.get(path).headers


def test_a_store_that_cannot_be_read_is_reported_as_such(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = created(served)

    async def broken(_: object) -> None:
        raise Unavailable("the store cannot be read: free some space")

    monkeypatch.setattr(served.service.roost.context.store, "read", lambda *_: broken(None))
    with client(served, secret) as ann:
        answer = ann.get("/api/v1/profiles")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the store cannot be read: free some space")


def test_no_secret_is_stored_listed_or_logged(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"), client(served, created(served)) as ann:
        secret = ann.headers["authorization"].removeprefix("Bearer ")
        assert ask(ann, "agents.list").status_code == 200
        listed = ask(ann, "tokens.list").text
    assert secret not in listed
    assert secret not in caplog.text
