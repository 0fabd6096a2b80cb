"""Accounts over the network: for admins and the operator alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from roost import client as roost_client
from roost.errors import Forbidden
from roost.protocol.namespaces import methods
from roost.runtime.handlers.accounts.users import Users
from roost.runtime.handlers.nodes import Nodes
from tests.api.serving import METHODS, Served, ask, send
from tests.api.test_tokens import arguments, client, created
from tests.conftest import eventually

ADMIN_METHODS = [one.full_name for one in (*methods("users", Users), *methods("nodes", Nodes))]


@pytest.fixture
def strangers(served: Served) -> Iterator[dict[str, httpx.Client]]:
    """A client for everybody who is no admin."""
    users = served.service.users
    users.add("local", "root", role="admin")
    for name in ("ann", "dismissed", "demoted"):
        users.add("local", name, role="user" if name == "ann" else "admin")
    users.disable("local", "dismissed")
    users.set_role("local", "demoted", "user")
    clients = {
        "user": served.browser("ann"),
        "token of a user": client(served, created(served)),
        "without an account": client(served, created(served, user="visitor")),
        "former admin": served.browser("demoted"),
    }
    yield clients
    for one in clients.values():
        one.close()


def test_every_method_of_accounts_refuses_everybody_but_admins_alike(
    served: Served, strangers: dict[str, httpx.Client]
) -> None:
    before = served.service.users.list("local"), served.service.users.audit("local")
    assert len(ADMIN_METHODS) >= 8
    for name in ADMIN_METHODS:
        for target in ("root", "ann", "never"):
            given = arguments(name) | ({"name": target} if METHODS[name].has("name") else {})
            answers = {who: send(one, METHODS[name], given) for who, one in strangers.items()}
            told = {(answer.status_code, answer.json()["detail"]) for answer in answers.values()}
            assert told == {(403, "only admins may do this: ask one of them")}, (name, told)
    assert (served.service.users.list("local"), served.service.users.audit("local")) == before


def test_an_admin_and_the_operator_manage_accounts(served: Served) -> None:
    with served.command_line() as operator:
        assert ask(operator, "users.add", name="ann", role="admin").status_code == 201
    with client(served, created(served)) as ann:
        made = ask(ann, "users.add", name="bob").json()
        assert (made["account"]["userId"], made["account"]["role"], len(made["code"]) > 40) == ("bob", "user", True)
        listed = ann.get("/api/v1/users?limit=1").json()
        assert [one["userId"] for one in listed["items"]] == ["ann"]
        assert [one["userId"] for one in ann.get(listed["next"]).json()["items"]] == ["bob"]
        assert ann.get("/api/v1/users/bob").json()["hasPassword"] is False
        assert ask(ann, "users.disable", name="bob").json()["disabled"] is not None
        assert ask(ann, "users.enable", name="bob").json()["disabled"] is None
        assert ask(ann, "users.reset", name="bob").json()["code"] != made["code"]
        assert ask(ann, "users.set_role", name="bob", role="admin").json()["role"] == "admin"
        page = ann.get("/api/v1/audit?limit=2").json()
        assert [one["action"] for one in page["items"]] == ["users.set_role", "users.reset"]
        assert {one["address"] for one in page["items"]} == {"127.0.0.1"}
        assert ann.get(page["next"]).json()["items"][0]["action"] == "users.enable"
        assert made["code"] not in ann.get("/api/v1/audit").text


def test_a_token_of_an_admin_needs_every_scope(served: Served) -> None:
    served.service.users.add("local", "ann", role="admin")
    with client(served, created(served, "*:read", "agents")) as ann:
        assert ask(ann, "users.list").status_code == 403
    with roost_client.connect(served.url, created(served)) as remote:
        assert [one.user_id for one in remote.users.list("ann")] == ["ann"]
    with roost_client.connect(served.url, created(served, user="bob")) as remote, pytest.raises(Forbidden):
        remote.users.list("bob")


def test_json_rpc_refuses_ordinary_users_too(served: Served) -> None:
    headers = {"Authorization": f"Bearer {created(served)}"}
    with connect(served.url.replace("http", "ws") + "/rpc", additional_headers=headers) as socket:
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "user.add", "params": {"name": "eve"}}))
        assert json.loads(socket.recv(timeout=30))["error"]["data"]["code"] == "forbidden"
    assert served.service.users.list("local") == []


def test_what_is_for_servers_is_not_served(served: Served) -> None:
    with served.command_line() as operator:
        for name in ("authenticate", "redeem", "session", "exist", "identify", "change-password", "record"):
            assert operator.post(f"/api/v1/users/{name}", json={}).status_code in (404, 405)
            assert operator.post(f"/api/v1/users/ann/{name}", json={}).status_code == 404


def test_tokens_of_a_disabled_user_end_also_on_open_connections(served: Served) -> None:
    served.service.users.add("local", "ann")
    secret = created(served)
    headers = {"Authorization": f"Bearer {secret}"}
    with connect(served.url.replace("http", "ws") + "/rpc", additional_headers=headers) as socket:
        served.service.users.disable("local", "ann")
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        assert socket.close_code == 1008
    with client(served, secret) as ann:
        assert ask(ann, "agents.list").status_code == 401


def test_a_user_with_a_running_talk_and_an_awake_agent_is_deleted_while_others_work(served: Served) -> None:
    service = served.service
    service.users.add("local", "root", role="admin")
    service.users.add("local", "ann")
    talk = service.create_talk_session("ann", profile="endless")
    service.add_message("ann", talk, "go")
    next(change for change in service.stream_messages("ann", talk) if change.message.content)
    service.agents.create("ann", "busy", profile="endless")
    task = service.tasks.send("ann", "busy", "without end")
    eventually(lambda: service.tasks.get("ann", task).status == "running")
    service.agents.create("bob", "d", profile="parrot")
    theirs = service.create_talk_session("bob", profile="endless")
    service.add_message("bob", theirs, "go")
    next(change for change in service.stream_messages("bob", theirs) if change.message.content)
    secret = created(served)
    with client(served, created(served, user="root")) as root:
        exported = ask(root, "users.export", name="ann").json()
        assert json.loads(exported["text"])["talks"][0]["talk_id"] == talk
        assert ask(root, "users.delete", name="ann").json()["isOver"]
        assert ask(root, "users.get", name="ann").status_code == 404
        assert ask(root, "users.delete", name="ann").status_code == 404
    with client(served, secret) as ann:
        assert ask(ann, "agents.list").status_code == 401
    assert (service.list_sessions("ann"), service.agents.list("ann")) == ([], [])
    assert service.get_session("bob", theirs).running
    assert service.tasks.wait("bob", service.tasks.send("bob", "d", "hello"), 30).result == "hello "


def test_a_cursor_of_an_export_that_is_none_is_refused(served: Served) -> None:
    served.service.users.add("local", "ann")
    with served.command_line() as operator:
        for wrong in ("x", "[]", "[99]", "[0, 1, 2]", '["a"]', "{}", "[-1]", "[4, 5, 6]", '[0, {"a": 1}]', "[" * 5_000):
            assert ask(operator, "users.export", name="ann", after=wrong).status_code == 422, wrong[:20]
