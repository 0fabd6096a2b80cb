"""`POST /hooks/{token}`: verified, bounded, accepted once, and never in a log."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

import roost
from roost.core.webhooks.hook import CreatedHook
from tests.api.conftest import BRAINS
from tests.api.serving import Served, serving
from tests.conftest import QUICK, Open, eventually

JSON = {"content-type": "application/json"}


def signed(secret: str | None, body: bytes, message_id: str = "m1", at: float | None = None) -> dict[str, str]:
    """Sign as the public scheme says, without the code of Roost."""
    assert secret is not None
    stamp = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{message_id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    value = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": message_id, "webhook-timestamp": stamp, "webhook-signature": value, **JSON}


def github(secret: str | None, body: bytes, delivery: str = "guid") -> dict[str, str]:
    assert secret is not None
    value = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": value, "X-GitHub-Delivery": delivery, "X-GitHub-Event": "push", **JSON}


def post(served: Served, path: str, body: bytes = b"{}", headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.post(served.url + path, content=body, headers=headers or JSON, trust_env=False, timeout=30)


def event_hook(served: Served, **options: Any) -> CreatedHook:
    return served.service.hooks.create("ann", **{"event": "build.done", **options})


def published(served: Served) -> list[Any]:
    return [event.data for event in served.service.events.history("ann")]


def test_a_signed_request_publishes_its_body_once(served: Served) -> None:
    hook, body = event_hook(served), json.dumps({"ok": True, "name": "Grüße 🐦"}).encode()
    first = post(served, hook.path, body, signed(hook.secret, body))
    assert (first.status_code, first.json()["id"][:6]) == (202, "event_")
    again = post(served, hook.path, body, signed(hook.secret, body))
    assert (again.status_code, again.json()) == (202, first.json()), "a replay has no effect"
    assert published(served) == [{"ok": True, "name": "Grüße 🐦"}]
    other = post(served, hook.path, body, signed(hook.secret, body, "m2"))
    assert other.json() != first.json()
    assert len(published(served)) == 2


def test_a_request_of_github_publishes_with_the_chosen_headers(served: Served) -> None:
    hook, body = event_hook(served, headers=["X-GitHub-Event"]), b'{"ref": "main"}'
    first = post(served, hook.path, body, github(hook.secret, body))
    again = post(served, hook.path, body, github(hook.secret, body))
    assert (first.status_code, again.json()) == (202, first.json())
    assert published(served) == [{"ref": "main", "_headers": {"x-github-event": "push"}}]


def test_a_request_gives_a_task_with_its_body_as_text(served: Served) -> None:
    served.service.agents.create("ann", "d", profile="parrot")
    hook = served.service.hooks.create("ann", agent="d", task="Look at {body} {0.__class__}", secret=False)
    answer = post(served, hook.path, b"{body} <b>{x}</b>", {"content-type": "text/plain"})
    assert answer.status_code == 202
    task = served.service.tasks.wait("ann", answer.json()["id"], timeout=30)
    assert task.prompt == "Look at {body} <b>{x}</b> {0.__class__}"
    assert task.status == "done"


@pytest.mark.parametrize(
    ("body", "kind", "data"),
    [
        (b"a=1&b=2&b=3&c=", "application/x-www-form-urlencoded", {"a": "1", "b": ["2", "3"], "c": ""}),
        (b"plain", "text/plain; charset=utf-8", "plain"),
        (b"[1, 2]", "application/json", [1, 2]),
        (b'{"x": null}', "application/vnd.api+json", {"x": None}),
        (b"bare", "", "bare"),
    ],
)
def test_bodies_of_each_kind_are_data(served: Served, body: bytes, kind: str, data: Any) -> None:
    hook = event_hook(served, secret=False)
    assert post(served, hook.path, body, {"content-type": kind}).status_code == 202
    assert published(served) == [data]


def test_whatever_is_wrong_is_refused_alike_and_changes_nothing(served: Served) -> None:
    hook, body = event_hook(served), b'{"n": 1}'
    other = event_hook(served)
    good = signed(hook.secret, body)
    old = signed(hook.secret, body, at=time.time() - 400)
    answers = [
        post(served, "/hooks/hook_nobody", body, good),
        post(served, hook.path[:-1], body, good),
        post(served, hook.path, body),
        post(served, hook.path, body + b" ", good),
        post(served, hook.path, body, good | {"webhook-id": "m2"}),
        post(served, hook.path, body, old),
        post(served, hook.path, body, signed(other.secret, body)),
        post(served, hook.path, body, github(other.secret, body)),
        post(served, hook.path, body, {**JSON, "Authorization": f"Bearer {served.identity.token}"}),
        post(served, hook.path, b"\xff" * 100, {"webhook-signature": "v1,", **JSON}),
    ]
    assert {one.status_code for one in answers} == {401}
    shown = {json.dumps({k: v for k, v in one.json().items() if k != "reference"}) for one in answers}
    assert len(shown) == 1, "nobody learns whether a hook exists"
    assert published(served) == []


def test_a_deleted_hook_is_refused(served: Served) -> None:
    hook = event_hook(served, secret=False)
    assert post(served, hook.path).status_code == 202
    served.service.hooks.delete("ann", hook.hook.hook_id)
    assert post(served, hook.path).status_code == 401


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"a":' * 200 + b"1" + b"}" * 200, "application/json", 422),
        (b'{"a": 1', "application/json", 422),
        (b'{"a": "\\u0000"}', "application/json", 202),
        (b"\xff\xfe", "text/plain", 422),
        (b"&".join(b"a=1" for _ in range(2_000)), "application/x-www-form-urlencoded", 422),
        (b"x", "multipart/form-data; boundary=x", 415),
        (b"x" * (1024 * 1024 + 1), "text/plain", 413),
    ],
)
def test_a_body_that_cannot_be_used_is_refused_with_the_reason(
    served: Served, body: bytes, kind: str, status: int
) -> None:
    hook = event_hook(served, secret=False)
    answer = post(served, hook.path, body, {"content-type": kind})
    assert answer.status_code == status, answer.text
    assert len(published(served)) == (status == 202)


def test_a_hook_needs_no_sign_in_where_people_need_one(served: Served) -> None:
    hook, body = event_hook(served), b"{}"
    served.service.users.add("root", "ann")
    assert eventually(lambda: httpx.get(f"{served.url}/api/v1/agents", trust_env=False).status_code == 401)
    assert post(served, hook.path, body, signed(hook.secret, body)).status_code == 202
    assert post(served, hook.path, body).status_code == 401
    found = httpx.get(served.url + hook.path, headers={"accept": "text/html"}, trust_env=False)
    assert (found.status_code, "location" in found.headers) == (404, False)
    served.service.users.disable("root", "ann")
    assert post(served, hook.path, body, signed(hook.secret, body, "m2")).status_code == 401


def test_other_methods_find_nothing(served: Served) -> None:
    hook = event_hook(served, secret=False)
    for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD"):
        found = httpx.request(method, served.url + hook.path, headers={"accept": "text/html"}, trust_env=False)
        assert (found.status_code, found.headers.get("set-cookie")) == (404, None)
    assert post(served, "/hooks/").status_code == 404
    assert post(served, hook.path + "/more").status_code == 404


def test_a_hook_has_a_rate_that_wrong_signatures_do_not_use_up(service: Open) -> None:
    limits = replace(QUICK, hook_request_burst=3.0, hook_requests_per_second=0.001)
    with serving(service(BRAINS, limits=limits), limits=limits) as served:
        hook, body = event_hook(served), b"{}"
        bad = [post(served, hook.path, body, signed("whsec_AAAA", body, str(n))).status_code for n in range(20)]
        assert set(bad) == {401}
        good = [post(served, hook.path, body, signed(hook.secret, body, str(n))).status_code for n in range(8)]
        assert good == [202, 202, 202, 429, 429, 429, 429, 429]


def test_a_thousand_bad_signatures_are_refused_and_the_server_answers(served: Served) -> None:
    hook = event_hook(served)
    with httpx.Client(trust_env=False, timeout=30) as client:
        headers = signed("whsec_AAAA", b"{}")
        found = {client.post(served.url + hook.path, content=b"{}", headers=headers).status_code for _ in range(1000)}
    assert found <= {401, 429}
    assert published(served) == []
    body = b'{"after": 1}'
    eventually(lambda: post(served, hook.path, body, signed(hook.secret, body)).status_code == 202)


def test_neither_the_path_nor_the_secret_is_in_a_log(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hook = event_hook(served)
    token = hook.path.removeprefix("/hooks/")
    body = b'{"deep": ' + b"[" * 100 + b"]" * 100 + b"}"
    for headers in ({**JSON}, signed(hook.secret, body), signed("whsec_AAAA", body)):
        post(served, hook.path, body, headers)
        httpx.get(served.url + hook.path, trust_env=False)
    told = [str(vars(record)) for record in caplog.records if record.name.startswith("roost")]
    assert any("/hooks/…" in line for line in told)
    assert not any(token in line or str(hook.secret) in line for line in told)


def test_nobody_but_the_owner_sees_a_hook_and_nobody_its_secrets(served: Served) -> None:
    hook = event_hook(served)
    shown = repr(served.service.hooks.list("ann"))
    assert hook.path.removeprefix("/hooks/") not in shown
    assert str(hook.secret) not in shown
    assert served.service.hooks.list("bob") == []
    with pytest.raises(roost.NotFound):
        served.service.hooks.get("bob", hook.hook.hook_id)
