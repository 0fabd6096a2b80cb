"""Errors on their way out: one shape, the right status, and nothing of the inside."""

from __future__ import annotations

import logging

import pytest

import roost
from roost import errors
from roost.api.error_responses import STATUS
from roost.protocol.errors import code_of, error_from
from tests.api.serving import Served


def test_every_error_of_the_caller_and_the_operator_has_a_status() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, roost.RoostError)}
    of_brains = {kind for kind in kinds if issubclass(kind, roost.BrainFailed | roost.NoAnswer)}
    assert set(STATUS) <= kinds
    assert all(issubclass(kind, tuple(STATUS)) for kind in kinds - of_brains - {roost.RoostError})


@pytest.mark.parametrize("kind", STATUS, ids=lambda kind: kind.__name__)
def test_every_error_comes_back_from_its_code(kind: type[roost.RoostError]) -> None:
    again = error_from(code_of(kind), "a sentence")
    assert (type(again), str(again)) == (kind, "a sentence")


def test_an_unexpected_error_is_answered_with_a_reference_only(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the password is hunter2")

    monkeypatch.setattr(served.service.roost.talks, "get_session", broken)
    with caplog.at_level(logging.ERROR), served.browser("ann") as ann:
        answer = ann.get("/api/v1/talks/talk_1")
    error = answer.json()
    assert (answer.status_code, error["code"]) == (500, "internal")
    assert "hunter2" not in answer.text
    assert "ZeroDivision" not in answer.text
    record = next(r for r in caplog.records if r.name == "roost.api")
    assert record.reference == error["reference"]  # type: ignore[attr-defined]
    assert record.exc_info
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_store_that_cannot_be_written_is_unavailable(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> None:
        raise roost.Unavailable("the disk is full: free some space")

    monkeypatch.setattr(served.service.roost.talks, "create_talk_session", full)
    with served.browser("ann") as ann:
        answer = ann.post("/api/v1/talks", json={})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "the disk is full: free some space",
        "code": "unavailable",
    }


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
def test_a_wrong_method_is_answered_with_the_right_one(served: Served, method: str) -> None:
    with served.browser("ann") as ann:
        answer = ann.request(method, "/api/v1/agents/d/pause")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.json()["detail"] == "method not allowed: use POST"
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "BREW"])
def test_an_unknown_route_is_not_found_by_any_method(served: Served, method: str) -> None:
    with served.browser("ann") as ann:
        answer = ann.request(method, "/api/v1/nothing/here")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("content", [b"[" * 20_000 + b"]" * 20_000, b'{"limit": ' + b"9" * 5_000 + b"}", b'"\xff"'])
def test_a_body_that_python_cannot_read_is_refused_with_what_is_expected(served: Served, content: bytes) -> None:
    with served.browser("ann", **{"Content-Type": "application/json"}) as ann:
        answer = ann.post("/api/v1/agents/find", content=content)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert "must be a JSON object" in answer.json()["detail"]


def test_a_body_without_a_content_type_is_refused(served: Served) -> None:
    with served.browser("ann") as ann:
        answer = ann.post("/api/v1/agents/find", content=b"{}")
    assert "`Content-Type: application/json`" in answer.json()["detail"]


@pytest.mark.parametrize("until", ["tomorrow", "x" * 1_000_000, ""])
def test_an_invalid_time_is_refused_in_a_sentence_that_does_not_repeat_it(served: Served, until: str) -> None:
    with served.browser("ann") as ann:
        answer = ann.post("/api/v1/agents/d/sleep", json={"until": until})
    expected = "until: must be a time in ISO 8601, such as 2030-01-01T09:00:00Z, or a valid number"
    assert answer.json()["detail"] == expected


def test_a_field_with_an_endless_name_is_named_in_short(served: Served) -> None:
    with served.browser("ann") as ann:
        answer = ann.post("/api/v1/agents/find", json={"k" * 100_000: 1})
    assert len(answer.json()["detail"]) < 200
