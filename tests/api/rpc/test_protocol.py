"""JSON-RPC 2.0 as the standard says: single requests, batches, notifications, and errors with their codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus
from websockets.sync.connection import Connection

from roost.protocol import rpc
from tests.api.rpc.connection import Client, opened
from tests.api.serving import Served


def answered(socket: Connection, text: str | bytes) -> Any:
    socket.send(text)
    return json.loads(socket.recv(timeout=15))


def request(method: str, call_id: object = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": call_id}


def test_each_mistake_has_the_code_of_the_standard(served: Served) -> None:
    with opened(served) as socket:
        for text, code, call_id in (
            ('{"jsonrpc": "2.0", "method": "agent.list", "params": [', -32700, None),
            ('{"jsonrpc": "2.0", "method": "agent.list", "params": {"x": NaN}, "id": 1}', -32700, None),
            ("[" * 100_000, -32700, None),
            ("[]", -32600, None),
            ("1", -32600, None),
            ('"x"', -32600, None),
            ("null", -32600, None),
            ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', -32600, None),
            ('{"jsonrpc": "1.0", "method": "agent.list", "id": 5}', -32600, 5),
            ('{"method": "agent.list", "id": "a"}', -32600, "a"),
            ('{"jsonrpc": "2.0", "method": "agent.list", "params": 3, "id": 7}', -32600, 7),
            ('{"jsonrpc": "2.0", "method": "agent.list", "id": {"a": 1}}', -32600, None),
            ('{"jsonrpc": "2.0", "method": "agent.list", "id": true}', -32600, None),
            ('{"jsonrpc": "2.0", "method": "no.such", "id": 2.5}', -32601, 2.5),
            ('{"jsonrpc": "2.0", "method": "agent.__init__", "id": 1}', -32601, 1),
            ('{"jsonrpc": "2.0", "method": "agent.get", "id": 3}', -32602, 3),
            ('{"jsonrpc": "2.0", "method": "agent.get", "params": {"agentId": 5}, "id": 3}', -32602, 3),
            ('{"jsonrpc": "2.0", "method": "agent.get", "params": {"agentId": "a", "x": 1}, "id": 3}', -32602, 3),
            ('{"jsonrpc": "2.0", "method": "agent.get", "params": ["a", "b"], "id": 3}', -32602, 3),
            ('{"jsonrpc": "2.0", "method": "agent.get", "params": {"agentId": "nobody"}, "id": null}', 404, None),
        ):
            found = answered(socket, text)
            assert (found["error"]["code"], found["id"]) == (code, call_id), text
            assert "Traceback" not in json.dumps(found)
        assert answered(socket, json.dumps(request("agent.list")))["result"] == []


def test_an_error_names_the_field_and_has_a_code_for_programs(served: Served) -> None:
    with opened(served) as socket:
        client = Client(socket)
        missing = client.ask("agent.get")["error"]
        assert missing == {"code": -32602, "message": "agentId: must be given", "data": {"code": "invalid"}}
        assert client.ask("agent.get", agentId="nobody")["error"]["data"] == {"code": "not_found"}
        assert client.ask("task.send", to="a", prompt="x" * 5_000_000)["error"]["data"] == {"code": "invalid"}


def test_batches_are_answered_together_and_notifications_never(served: Served) -> None:
    with opened(served) as socket:
        quiet = {"jsonrpc": "2.0", "method": "agent.create", "params": {"agentId": "quiet"}}
        batch = [request("agent.list", 1), quiet, 7, request("no.such", "x"), request("profile.no", None)]
        found = answered(socket, json.dumps(batch))
        assert [one["id"] for one in found] == [1, None, "x", None]
        assert [one.get("error", {}).get("code") for one in found] == [None, -32600, -32601, -32601]
        socket.send(json.dumps([quiet, quiet | {"method": "no.such"}, quiet | {"params": {}}]))
        socket.send(json.dumps(quiet | {"method": "no.such"}))
        found = answered(socket, json.dumps(request("agent.get", 9, agentId="quiet")))
        assert (found["id"], found["result"]["agentId"]) == (9, "quiet")


def test_a_batch_is_bounded(served: Served) -> None:
    with opened(served) as socket:
        most = answered(socket, json.dumps([request("agent.list", n) for n in range(rpc.MOST_CALLS)]))
        assert [one["id"] for one in most] == list(range(rpc.MOST_CALLS))
        more = answered(socket, json.dumps([request("agent.list", n) for n in range(rpc.MOST_CALLS + 1)]))
        assert more["error"]["code"] == -32600


def test_parameters_by_position_and_binary_frames_are_understood(served: Served) -> None:
    served.service.agents.create("ann", "d", profile="parrot")
    with opened(served) as socket:
        by_position = {"jsonrpc": "2.0", "method": "agent.get", "params": ["d"], "id": 1}
        assert answered(socket, json.dumps(by_position).encode())["result"]["agentId"] == "d"
        assert answered(socket, b"\xff\xfe")["error"]["code"] == -32700


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Authorization": "Bearer wrong"}])
def test_other_sites_and_wrong_tokens_are_refused(served: Served, headers: dict[str, str]) -> None:
    with pytest.raises(InvalidStatus):
        opened(served, **headers)


@pytest.mark.parametrize("name", ["agents.list", "Agent.List", "agent_s.list"])
def test_an_unknown_method_is_answered_with_the_one_that_was_meant(served: Served, name: str) -> None:
    with opened(served) as socket:
        error = answered(socket, json.dumps({"jsonrpc": "2.0", "method": name, "id": 1}).encode())["error"]
    assert error["message"] == "no such method: did you mean 'agent.list'? Otherwise see /docs/reference/json-rpc"


def test_a_request_over_http_is_answered_that_it_needs_a_websocket(served: Served) -> None:
    with served.browser("ann") as client:
        for answer in (client.get("/rpc"), client.post("/rpc", json={})):
            assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
            assert "use the HTTP API under /api/v1" in answer.json()["detail"]


def test_without_a_cookie_the_connection_is_refused(served: Served) -> None:
    with pytest.raises(InvalidStatus):
        opened(served, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=20,
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "method": st.sampled_from(["agent.list", "", 5]),
        "params": json_values,
        "id": json_values,
    },
)


@given(st.text() | (json_values | entries | st.lists(entries, max_size=5)).map(json.dumps))
def test_whatever_is_sent_is_a_request_or_has_an_error_that_can_be_sent(text: str) -> None:
    try:
        found, is_batch = rpc.parse(text)
    except rpc.RpcError as error:
        found, is_batch = [rpc.RpcRefusal(error)], False
    assert found
    assert is_batch or len(found) == 1
    for one in found:
        if isinstance(one, rpc.RpcRefusal):
            assert one.error.code in (rpc.PARSE_ERROR, rpc.INVALID_REQUEST)
            assert json.loads(json.dumps(rpc.error_reply(one.id, one.error)))["error"]["message"]
        else:
            assert isinstance(one.params, dict | list)
