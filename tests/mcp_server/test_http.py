"""`/mcp` as a server sees it that trusts nobody: sign-in, users, limits, cancellation, hostile input."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from roost.api.routes.mcp import SESSION
from roost.core.limits.limits import Limits
from tests.api.serving import Served
from tests.conftest import eventually
from tests.mcp_server.connection import ERAS, called, connected, refused, run
from tests.test_shape import loaded_by

MOST = Limits().open_requests_per_user
ACCEPT = {"Accept": "application/json, text/event-stream"}
INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def message(method: str, number: int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})


def post(browser: httpx.Client, content: Any, **headers: str) -> httpx.Response:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return browser.post("/mcp", content=body, headers={"Content-Type": "application/json", **ACCEPT, **headers})


def answer(response: httpx.Response) -> Any:
    """The JSON-RPC message of a response, which is JSON or the last event of a stream."""
    if "text/event-stream" in response.headers["content-type"]:
        events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
        return json.loads(events[-1])
    return response.json()


def call(browser: httpx.Client, tool: Any, arguments: Any, **headers: str) -> Any:
    return answer(post(browser, message("tools/call", name=tool, arguments=arguments), **headers))


# --- sign-in ---------------------------------------------------------------------------------------


def test_nobody_gets_in_without_signing_in(served: Served) -> None:
    asked = message("initialize", **INITIALIZE)
    with served.browser(None) as visitor:
        for response in (post(visitor, asked), visitor.get("/mcp"), visitor.delete("/mcp")):
            assert response.status_code == 401
            assert response.json()["code"] == "unauthenticated"
    with httpx.Client(base_url=served.url, headers={"Authorization": "Bearer wrong"}, trust_env=False) as wrong:
        assert post(wrong, asked).status_code == 401


def test_a_real_client_with_a_wrong_token_is_refused(served: Served) -> None:
    async def test() -> None:
        with pytest.raises((MCPError, httpx2.HTTPError, ExceptionGroup)):
            async with connected(served, Authorization="Bearer wrong") as client:
                await client.list_tools()

    run(test())


def test_pages_of_other_sites_and_unknown_hosts_are_refused(served: Served) -> None:
    asked = message("initialize", **INITIALIZE)
    with served.browser("ann", Origin="http://evil.example") as foreign:
        assert post(foreign, asked).status_code == 403
    with served.browser("ann", Host="evil.example") as rebound:
        assert post(rebound, asked).status_code == 421
    with served.browser("ann") as own:
        assert post(own, asked).status_code == 200


def test_a_signed_in_browser_is_its_own_user(served: Served) -> None:
    async def test() -> None:
        cookie = {served.identity.cookie_name: served.identity.cookie("ann")}
        async with (
            httpx2.AsyncClient(headers={"Origin": served.url}, cookies=cookie, trust_env=False) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
        ):
            talk = (await called(client, "talk", message="hi", profile="parrot"))["talk_id"]
            assert served.service.get_session("ann", talk).messages == 2

    run(test())


def test_only_posts_are_served(served: Served) -> None:
    with served.browser("ann") as browser:
        for method in ("GET", "DELETE", "PUT"):
            response = browser.request(method, "/mcp", headers={"Accept": "text/event-stream"})
            assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_the_package_is_imported_with_the_first_request_only() -> None:
    """It takes half a second, which would be added to each start of the server."""
    loaded = loaded_by("import roost.api.app, roost.cli.main, roost.cli.commands.server.up")
    assert "roost.api.routes.mcp" in loaded
    assert not loaded & {"mcp", "mcp_types", "roost.mcp_server.server"}


# --- users -----------------------------------------------------------------------------------------


def test_a_user_learns_nothing_of_another_user(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create("ann", "d", profile="parrot")
        async with connected(served, "ann") as ann, connected(served, "bob") as bob:
            talk = (await called(ann, "talk", message="hi", profile="parrot"))["talk_id"]
            task = (await called(ann, "give_task", agent="d", prompt="x", wait=30))["task_id"]
            for tool, arguments in (
                ("talk", {"message": "hi", "talk_id": talk}),
                ("read_talk", {"talk_id": talk}),
                ("read_talk", {"talk_id": talk, "wait": 1}),
                ("get_task", {"task_id": task}),
                ("get_task", {"task_id": task, "wait": 1}),
                ("give_task", {"agent": "d", "prompt": "x"}),
                ("give_task", {"agent": "agent:ann/d", "prompt": "x"}),
                ("read_mail", {"agent": "agent:ann/d"}),
                ("send_mail", {"to": "user:bob", "subject": "x", "body": "x", "from_agent": "agent:ann/d"}),
                ("ask_d", {"message": "hi"}),
            ):
                unknown = {name: _unknown(value, (talk, task)) for name, value in arguments.items()}
                said = await refused(bob, tool, **arguments)
                assert said.startswith("there is no "), said
                if unknown != arguments:  # the same sentence as for what never existed
                    missing = await refused(bob, tool, **unknown)
                    assert said.replace(talk, "").replace(task, "") == missing.replace("nothing", "")
            assert (await called(bob, "list_agents"))["agents"] == []
            assert "ask_d" not in {tool.name for tool in (await bob.list_tools()).tools}

    run(test())


def _unknown(value: Any, known: tuple[str, ...]) -> Any:
    return "nothing" if value in known else value


def test_sessions_are_names_and_no_rights(served: Served) -> None:
    """A session id gives no access: not that of another user, and one of an earlier server is as good as any."""
    with served.browser("ann") as ann, served.browser("bob") as bob:
        began = post(ann, message("initialize", **INITIALIZE))
        session = began.headers[SESSION]
        assert len(session) >= 20
        assert post(ann, message("initialize", **INITIALIZE)).headers[SESSION] != session
        talk = call(ann, "talk", {"message": "hi", "profile": "parrot"}, **{SESSION: session})
        found = talk["result"]["structuredContent"]["talk_id"]
        stolen = call(bob, "read_talk", {"talk_id": found}, **{SESSION: session})
        assert stolen["result"]["isError"]
        assert not call(ann, "read_talk", {"talk_id": found}, **{SESSION: "of-an-earlier-server"})["result"]["isError"]


# --- cancellation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_calls_are_bounded_and_a_cancelled_call_stops_waiting_and_not_the_answer(served: Served, era: str) -> None:
    async def test() -> None:
        endless = {"message": "x", "profile": "endless", "wait": 300}
        async with connected(served, era=era) as client:
            calls = [asyncio.create_task(client.call_tool("talk", endless)) for _ in range(MOST)]
            await asyncio.to_thread(eventually, lambda: len(served.service.list_sessions("ann")) == MOST)
            assert await refused(client, "list_agents") == "too many open MCP calls: close some and try again"
            async with connected(served, "bob", era) as other:
                assert await called(other, "list_agents")
            for one in calls:
                one.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await _eventually_accepted(client)
        talks = served.service.list_sessions("ann")
        assert [talk.running for talk in talks] == [True] * MOST

    run(test())


async def _eventually_accepted(client: Client) -> None:
    async with asyncio.timeout(30):
        while (await client.call_tool("list_agents", {})).is_error:
            pass


def test_only_the_client_of_a_call_cancels_it(served: Served) -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            users = {
                name: await stack.enter_async_context(
                    httpx2.AsyncClient(
                        base_url=served.url,
                        cookies={served.identity.cookie_name: served.identity.cookie(name)},
                        headers={"Origin": served.url, "Content-Type": "application/json", **ACCEPT, SESSION: "one"},
                        trust_env=False,
                    )
                )
                for name in ("ann", "bob")
            }
            asked = message("tools/call", 7, name="talk", arguments={"message": "x", "profile": "endless", "wait": 300})
            waiting = asyncio.create_task(users["ann"].post("/mcp", json=asked, timeout=60))
            await asyncio.to_thread(eventually, lambda: served.service.list_sessions("ann"))
            cancel = message("notifications/cancelled", None, requestId=7)
            assert (await users["bob"].post("/mcp", json=cancel)).status_code == 202
            assert (await users["ann"].post("/mcp", json=cancel, headers={SESSION: "two"})).status_code == 202
            done, _ = await asyncio.wait([waiting], timeout=0.3)
            assert not done
            assert (await users["ann"].post("/mcp", json=cancel)).status_code == 202
            response = await asyncio.wait_for(waiting, 20)
            assert '"code":-32800' in response.text

    run(test())


def test_a_client_that_disconnects_frees_its_place(served: Served) -> None:
    body = message("tools/call", name="talk", arguments={"message": "x", "profile": "endless", "wait": 300})
    for _ in range(MOST + 3):
        with served.browser("ann") as browser:
            browser.headers.update(ACCEPT)
            with browser.stream("POST", "/mcp", json=body) as response:
                assert response.status_code == 200
    with served.browser("ann") as browser:
        eventually(lambda: not call(browser, "list_agents", {})["result"]["isError"])


def test_a_call_that_waits_while_roost_closes_is_answered_with_its_talk(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create("ann", "d", profile="endless")
        async with connected(served) as client:
            talk = asyncio.create_task(called(client, "talk", message="x", profile="endless", wait=300))
            task = asyncio.create_task(client.call_tool("give_task", {"agent": "d", "prompt": "x", "wait": 300}))
            await asyncio.to_thread(eventually, lambda: served.service.list_sessions("ann"))
            await asyncio.to_thread(eventually, lambda: served.service.tasks.list("ann"))
            talk_id = served.service.list_sessions("ann")[0].talk_session_id
            task_id = served.service.tasks.list("ann")[0].task_id
            await asyncio.to_thread(served.service.close)
            assert (await talk)["talk_id"] == talk_id
            assert task_id in str(await task)

    run(test())


def test_without_the_package_a_sentence_names_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "roost.mcp_server.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with served.browser("ann") as browser:
        for _ in range(2):
            response = post(browser, message("ping"))
            assert response.status_code == 503
            assert response.json()["detail"] == "MCP needs the package 'mcp_types': pip install 'roost[mcp]'"


# --- hostile input -----------------------------------------------------------------------------------


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("talk", {}, "message: must be given"),
    ("talk", {"message": 1}, "message: must be a valid string"),
    ("talk", {"message": ""}, "the message must not be empty"),
    ("talk", {"message": "x\0"}, "the message must not contain the NUL character"),
    ("talk", {"message": "x", "nonsense": 1}, "nonsense: unknown argument"),
    ("talk", {"message": "x", "wait": "1"}, "wait: must be a valid number"),
    ("talk", {"message": "x", "wait": 1e9}, "wait: must be less than or equal to 300"),
    ("talk", {"message": "x", "wait": -1}, "wait: must be greater than or equal to 0"),
    ("talk", {"message": "x", "profile": "nope"}, "there is no profile 'nope'"),
    ("talk", {"message": "x", "agent": "nope"}, "there is no agent 'nope'"),
    ("talk", {"message": "x", "agent": "d", "profile": "parrot"}, "not both: an agent has its own profile"),
    ("talk", {"message": "x", "talk_id": "t", "agent": "d"}, "or `agent` or `profile` to start one, not both"),
    ("talk", {"message": "x", "talk_id": "../../etc"}, "there is no such talk"),
    ("talk", {"message": "x", "talk_id": ""}, "the talk session id must not be empty"),
    ("talk", {"message": "x", "key": "k" * 1000}, "the key"),
    ("read_talk", {"talk_id": "x", "after": 2**60}, "after: must be less than or equal to"),
    ("read_talk", {"talk_id": "x", "limit": 0}, "limit: must be greater than or equal to 1"),
    ("get_task", {"task_id": "nope"}, "there is no task"),
    ("give_task", {"agent": "user:ann", "prompt": "x"}, "is a user: name an agent"),
    ("give_task", {"agent": "d", "prompt": "x", "priority": "now"}, "priority: must be 'low', 'normal'"),
    ("send_mail", {"to": "nope", "subject": "x", "body": "x"}, "there is no agent 'nope'"),
    ("send_mail", {"to": ":", "subject": "x", "body": "x"}, "is not valid: use agent:NAME"),
    ("publish_event", {"name": ""}, "name"),
    ("publish_event", {"name": "x", "data": "y" * 2_000_000}, "too long"),
    ("list_agents", {"after": ["x"]}, "after: must be a valid string"),
]


def test_invalid_arguments_are_refused_in_a_sentence_and_change_nothing(served: Served) -> None:
    with served.browser("ann") as browser:
        for tool, arguments, said in MISTAKES:
            result = call(browser, tool, arguments)["result"]
            assert result["isError"], (tool, said)
            [content] = result["content"]
            assert said in content["text"]
            assert len(content["text"]) < 500
            assert "Traceback" not in content["text"]
    assert served.service.list_sessions("ann") == []


BROKEN = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"\xff\xfe",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","arguments":{"message":"\\ud800"}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7,"arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"nope"}',
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":[]}}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[' + b"1," * 200_000 + b"1]}}",
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"9" * 50_000 + b"}}",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"' + b"n" * 300_000 + b'","arguments":{}}}',
]


@pytest.mark.parametrize("version", ["", "2025-06-18", "2026-07-28", "nonsense"])
def test_broken_messages_get_errors_of_the_protocol(served: Served, version: str) -> None:
    headers = {"MCP-Protocol-Version": version, SESSION: "s"} if version else {}
    with served.browser("ann") as browser:
        for body in BROKEN:
            response = post(browser, body, **headers)
            assert response.status_code < 500, body[:100]
            assert len(response.content) < 5_000
            assert b"Traceback" not in response.content
            if response.content and response.status_code != 202:
                found = answer(response)
                error = found.get("error") or found["result"]["content"][0]
                assert isinstance(error.get("code", 0), int)
        assert not call(browser, "list_agents", {})["result"]["isError"]  # and it still answers


def test_an_unknown_tool_is_an_error_of_the_protocol(served: Served) -> None:
    async def test() -> None:
        async with connected(served) as client:
            for name in ("nope", "ask_", "ask_../x", "ask_" + "x" * 41):
                with pytest.raises(MCPError, match="unknown tool") as error:
                    await client.call_tool(name, {})
                assert error.value.code == -32602

    run(test())


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    with served.browser("ann") as browser:
        assert post(browser, b" " * (30 * 1024 * 1024)).status_code == 413


def test_many_clients_at_once_are_answered(served: Served) -> None:
    async def one(number: int) -> str:
        async with connected(served, f"user{number}", ERAS[number % 2]) as client:
            found = await called(client, "talk", message=f"I am {number}", profile="parrot")
            return str(found["answer"]).strip()

    async def test() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    assert run(test()) == [f"I am {number}" for number in range(20)]
