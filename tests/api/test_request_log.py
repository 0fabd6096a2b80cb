"""Entries for operators in the log: refusals, sign-ins, failed runs; and no noise of the network."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import roost
from tests.api.serving import Served, serving
from tests.conftest import Open, eventually, settled
from tests.faults.raw_http import request, sockets

PAGE = {"Accept": "text/html"}


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO):
        yield caplog


def told(log: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in log.records if record.message == message]


def test_refused_requests_are_logged_with_user_address_and_route(service: Open, logged: Any) -> None:
    limits = {"requests_per_second": 0.001, "request_burst": 1}
    with serving(service(), limits=limits) as served:
        with served.browser(None) as nobody:
            nobody.post("/api/v1/talks?secret=1", json={})
        with served.browser("ann") as ann:
            ann.get("/api/v1/talks")
            ann.get("/api/v1/talks")
    refused = told(logged, "request rejected")
    assert [(r["status"], r["user"], r["method"], r["path"]) for r in refused] == [
        (401, None, "POST", "/api/v1/talks"),
        (429, "ann", "GET", "/api/v1/talks"),
    ]
    assert all(r["address"] in ("127.0.0.1", "::1") for r in refused)


def test_what_was_answered_or_merely_wrong_is_not_logged(served: Served, logged: Any) -> None:
    with served.browser("ann") as ann:
        assert ann.get("/api/v1/talks").status_code == 200
        assert ann.get("/api/v1/talks/talk_nothing").status_code == 404
        assert ann.post("/api/v1/talks", json={"unknown": 1}).status_code == 422
    assert told(logged, "request rejected") == []


def test_sign_ins_are_logged_and_their_codes_are_not(served: Served, logged: Any) -> None:
    code = served.identity.invite()
    with served.browser(None, **PAGE) as one, served.browser(None, **PAGE) as other:
        one.get("/enter", params={"code": code})
        other.get("/enter", params={"code": code})
        other.get("/docs")
    assert [r["signed_in"] for r in told(logged, "signed in with a link")] == ["local"]
    assert len(told(logged, "sign-in link rejected: used or expired")) == 1
    assert [r["signed_in"].partition("_")[0] for r in told(logged, "new visitor")] == ["user"]
    ours = [record for record in logged.records if record.name.startswith("roost")]
    assert ours
    assert not [record for record in ours if code in str(vars(record))]


def test_a_failed_run_is_logged_with_its_user(service: Open, logged: Any) -> None:
    async def broken(turn: roost.Turn) -> AsyncIterator[str]:
        yield ""
        raise ZeroDivisionError

    opened = service({"broken": broken})
    talk = opened.create_talk_session("ann", profile="broken")
    opened.add_message("ann", talk, "go")
    settled(opened, "ann", talk)
    opened.agents.create("bob", "d", profile="broken", max_attempts=1)
    task = opened.tasks.send("bob", "d", "go")
    opened.tasks.wait("bob", task, timeout=20)
    assert {r["user"] for r in told(logged, "a run has failed")} == {"ann", "bob"}


def test_readers_that_leave_in_the_middle_make_no_noise(served: Served, logged: Any) -> None:
    talk = served.service.create_talk_session("ann", profile="slow")
    served.service.add_message("ann", talk, "go")
    with sockets(served, 20, request(served, "GET", f"/api/v1/talks/{talk}/stream?follow=true", "ann")):
        eventually(lambda: len(served.connections) == 20)
    settled(served.service, "ann", talk)
    eventually(lambda: len(served.connections) == 0)
    noise = [r.getMessage() for r in logged.records if r.name in ("asyncio", "uvicorn.error") and r.levelno > 20]
    assert noise == []
