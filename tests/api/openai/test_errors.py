"""Errors as existing clients expect them: the class of the exception, and what its body holds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest

import roost
from tests.api.openai.clients import USER, client_of, said
from tests.api.serving import Served, limited, serving
from tests.conftest import Open

BASE: dict[str, Any] = {"model": "parrot", "messages": said("x")}


def failing(kind: str) -> roost.Brain:
    async def brain(turn: roost.Turn) -> AsyncIterator[str]:
        yield "so far "
        raise roost.BrainFailed("secret inside", kind=kind)

    return brain


def refused(http: httpx.Client, request: object) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json"}
    answer = http.post("/v1/chat/completions", content=json.dumps(request), headers=headers)
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return answer.status_code, error


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"stop": ["\n"]}, "stop"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"model": 5}, "model"),
        ({"model": None}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": []}, "stream_options"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"roost_talk": 5}}, "metadata"),
        ({"messages": "hello"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hello"]}, "messages"),
        ({"messages": said(*["x"] * 2049)}, "messages"),
        ({"messages": said("a", "b")}, "messages"),
        ({"messages": [{"role": "system", "content": "alone"}]}, "messages"),
        ({"messages": [{"content": "no role"}]}, "messages"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages"),
        ({"messages": [{"role": "user", "content": []}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": ["text"]}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": {}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]}, "messages"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}
                ]
            },
            "messages",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "data:;base64,%%"}}]}]},
            "messages",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}, *said("x")]}, "messages"),
        ({"messages": said("a\0b")}, None),
        ({"messages": said("\ud800")}, None),
        ({"messages": said("a", "\ud800", "x")}, None),
        ({"messages": said("a", "b\0", "x")}, None),
    ],
)
def test_what_is_not_understood_is_a_bad_request_that_names_the_parameter(
    unchanged: Served, changed: dict[str, Any], param: str | None
) -> None:
    with unchanged.command_line() as http:
        status, error = refused(http, BASE | changed)
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert unchanged.service.list_sessions(USER) == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b'"x"', b"\xff", b"[" * 5000, b'{"model": NaN}', b"{}"])
def test_a_body_that_is_no_request_is_a_bad_request(unchanged: Served, body: bytes) -> None:
    with unchanged.command_line(**{"Content-Type": "application/json"}) as http:
        answer = http.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "model", ["nope", "", "agent:", "agent:nobody", "agent:ann/d", "agent:a b", "user:ann", "x" * 900]
)
def test_an_unknown_model_is_not_found(unchanged: Served, model: str) -> None:
    with client_of(unchanged) as client, pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model=model, messages=said("x"))
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


def test_a_wrong_key_is_an_authentication_error(served: Served) -> None:
    with client_of(served, token="wrong") as client, pytest.raises(openai.AuthenticationError) as denied:
        client.models.list()
    assert (denied.value.code, denied.value.type) == ("invalid_api_key", "authentication_error")


def test_a_request_without_a_key_is_an_authentication_error(served: Served) -> None:
    with httpx.Client(base_url=served.url, trust_env=False) as http:
        assert http.get("/v1/models").json()["error"]["code"] == "invalid_api_key"
        assert refused(http, BASE)[0] == 401


def test_a_page_of_another_site_is_refused(served: Served) -> None:
    with served.browser("ann", Origin="http://evil.example") as http:
        status, error = refused(http, BASE)
    assert (status, error["type"]) == (403, "permission_error")


def test_an_unknown_host_name_is_refused(served: Served) -> None:
    with served.command_line(Host="evil.example") as http:
        assert refused(http, BASE)[0] == 421


def test_a_body_that_is_too_large_is_refused(service: Open) -> None:
    with serving(service({}), limits={"message_bytes": 1000}) as served, served.command_line() as http:
        assert refused(http, BASE | {"messages": said("x" * 200_000)})[0] == 413


@pytest.mark.parametrize("path", ["/v1/", "/v1/unknown", "/v1/chat", "/v1/completions", "/v1/chat/completions/x"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path_is_not_found_in_the_same_form(unchanged: Served, path: str, method: str) -> None:
    with unchanged.command_line() as http:
        answer = http.request(method, path)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")


def test_a_wrong_method_is_refused_in_the_same_form(served: Served) -> None:
    with served.command_line() as http:
        answer = http.get("/v1/chat/completions")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")


@limited(open_requests_per_user=1)
def test_too_many_requests_at_once_are_a_rate_limit_error(served: Served) -> None:
    with client_of(served) as client:
        chunks = client.chat.completions.create(model="endless", messages=said("go"), stream=True)
        for streamed in (False, True):
            with pytest.raises(openai.RateLimitError) as limited:
                client.chat.completions.create(model="parrot", messages=said("x"), stream=streamed)
            assert (limited.value.code, limited.value.type) == ("rate_limit_exceeded", "rate_limit_error")
        chunks.close()


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("rate_limit", openai.RateLimitError),
        ("provider", openai.InternalServerError),
        ("refused", openai.BadRequestError),
        ("internal", openai.InternalServerError),
    ],
)
def test_an_answer_that_fails_is_an_error_by_its_cause(service: Open, kind: str, raised: type[Exception]) -> None:
    with serving(service({"failing": failing(kind)})) as served, client_of(served) as client:
        with pytest.raises(raised) as failed:
            client.chat.completions.create(model="failing", messages=said("x"))
        assert isinstance(failed.value, openai.APIStatusError)
        assert failed.value.code == kind
        assert "secret" not in str(failed.value.body)
        assert served.service.list_sessions(USER) == []


def test_a_stream_that_fails_ends_with_the_error_after_its_text(service: Open) -> None:
    with serving(service({"failing": failing("rate_limit")})) as served, client_of(served) as client:
        chunks = client.chat.completions.create(model="failing", messages=said("x"), stream=True)
        text = ""
        with pytest.raises(openai.APIError) as failed:
            for chunk in chunks:
                text += chunk.choices[0].delta.content or ""
        assert (text, failed.value.code) == ("so far ", "rate_limit")
        assert served.service.list_sessions(USER) == []


def test_an_answer_that_is_cut_off_at_its_limit_has_the_reason_length(service: Open) -> None:
    with serving(service({"failing": failing("run_tokens")})) as served, client_of(served) as client:
        [choice] = client.chat.completions.create(model="failing", messages=said("x")).choices
    assert (choice.message.content, choice.finish_reason) == ("so far ", "length")


def test_a_failure_in_a_durable_talk_is_not_retried_by_the_client(service: Open) -> None:
    with serving(service({"failing": failing("provider")})) as served, client_of(served, retries=2) as client:
        talk = served.service.create_talk_session(USER, profile="failing")
        with pytest.raises(openai.InternalServerError) as failed:
            client.chat.completions.create(model="failing", messages=said("x"), extra_headers={"Roost-Talk": talk})
        assert failed.value.response.headers["roost-talk"] == talk
        assert [m.sender for m in served.service.get_messages(USER, talk).messages] == ["user", "agent"]
