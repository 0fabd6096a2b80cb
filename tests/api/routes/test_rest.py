"""REST as people expect it: pages with `next`, routes below an agent, idempotency keys, ETags, and a description."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest
from pydantic.alias_generators import to_camel, to_snake

from roost.protocol.examples import example_of
from tests.api.serving import METHODS, Served, ask

NEXT = "/api/v1/"


def pages(client: httpx.Client, path: str) -> Iterator[list[dict[str, Any]]]:
    """Follow `next` from the first page to the last one."""
    following: str | None = f"{NEXT}{path}"
    while following:
        page = client.get(following).json()
        yield page["items"]
        following = page["next"]


def furnish(served: Served) -> None:
    own = served.service
    for number in range(5):
        own.agents.create("ann", f"d{number}", start=False)
        own.tasks.send("ann", "d0", f"work {number}")
        own.mail.send("ann", "user:ann", f"subject {number}", "body")
        own.mail.send("ann", "agent:d0", f"subject {number}", "body")
        own.events.publish("ann", f"nobody_takes_{number}")
        own.schedules.create("ann", "d0", "check", every=3600)
        own.agents.remember("ann", "d0", f"fact {number}", key=f"key{number}")
        own.create_talk_session("ann", profile="parrot", title=f"Talk {number}")
        own.meetings.call("ann", f"topic {number}", optional=["agent:d0"])
    own.agents.create("ann", "other", start=False)
    own.tasks.send("ann", "other", "not of d0")


LISTS = {
    "agents": ("agentId", 6),
    "tasks": ("taskId", 6),
    "mail": ("mailId", 5),
    "events?name=nobody_*": ("eventId", 5),
    "schedules": ("scheduleId", 5),
    "talks": ("talkSessionId", 5),
    "meetings": ("meetingId", 5),
    "dead-letters": ("letterId", 5),
    "agents/d0/memories": ("key", 5),
    "agents/d0/tasks": ("taskId", 5),
    "agents/d0/schedules": ("scheduleId", 5),
    "agents/d0/mail": ("mailId", 5),
}


def test_following_next_reads_everything_once(served: Served) -> None:
    furnish(served)
    with served.browser("ann") as ann:
        for path, (name, count) in LISTS.items():
            for limit in (1, 2, 5):
                sign = "&" if "?" in path else "?"
                found = list(pages(ann, f"{path}{sign}limit={limit}"))
                ids = [one[name] for page in found for one in page]
                assert (len(ids), len(set(ids))) == (count, count), (path, limit)
                assert all(len(page) == limit for page in found[:-1])
                assert 0 < len(found[-1]) <= limit


def test_what_is_below_an_agent_is_of_this_agent_alone(served: Served) -> None:
    furnish(served)
    with served.browser("ann") as ann, served.browser("bob") as bob:
        made = ann.post("/api/v1/agents/other/tasks", json={"prompt": "below"})
        assert made.status_code == 201
        assert ann.get(f"/api/v1/tasks/{made.json()['taskId']}").json()["prompt"] == "below"
        assert [one["prompt"] for one in ann.get("/api/v1/agents/other/tasks").json()["items"]] == [
            "below",
            "not of d0",
        ]
        refused = ann.post("/api/v1/agents/other/tasks", json={"prompt": "x", "to": "agent:d0"})
        assert (refused.status_code, "to: unknown field" in refused.text) == (422, True)
        assert bob.post("/api/v1/agents/other/tasks", json={"prompt": "x"}).status_code == 404
        for kind in ("tasks", "schedules", "mail", "runs", "dead-letters", "memories", "history"):
            answers = [bob.get(f"/api/v1/agents/{name}/{kind}") for name in ("other", "nobody")]
            assert [answer.status_code for answer in answers] == [404, 404], kind
            assert answers[0].text.replace("other", "") == answers[1].text.replace("nobody", ""), kind


def test_an_idempotency_key_makes_a_repeated_request_count_once(served: Served) -> None:
    served.service.agents.create("ann", "d", start=False)
    with served.browser("ann", **{"Idempotency-Key": "k1"}) as ann:
        first, again = (ann.post("/api/v1/tasks", json={"to": "d", "prompt": "once"}).json() for _ in range(2))
        assert first == again
        assert len(served.service.tasks.list("ann")) == 1
        body = {"to": "d", "prompt": "in the body", "key": "k2"}
        assert ann.post("/api/v1/tasks", json=body).json() != first
        assert ann.post("/api/v1/agents/d/pause").status_code == 200  # can be repeated without a key
        refused = ann.post("/api/v1/events", json={"name": "ready"})
        assert (refused.status_code, "cannot have an `Idempotency-Key`" in refused.text) == (422, True)
        assert served.service.events.history("ann") == []


def test_declining_is_repeatable_for_an_approval_and_not_for_an_invitation() -> None:
    repeatable = {name for name, method in METHODS.items() if method.is_repeatable}
    assert {"approvals.approve", "approvals.decline"} <= repeatable
    assert repeatable.isdisjoint({"meetings.decline", "meetings.grant"})


def test_a_reply_that_is_known_is_not_sent_again(served: Served) -> None:
    served.service.agents.create("ann", "d", start=False)
    with served.browser("ann") as ann:
        tag = ann.get("/api/v1/agents/d").headers["etag"]
        for known in (tag, f'"x", W/{tag}', "*"):
            same = ann.get("/api/v1/agents/d", headers={"If-None-Match": known})
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        served.service.agents.configure("ann", "d", description="new")
        changed = ann.get("/api/v1/agents/d", headers={"If-None-Match": tag})
        assert (changed.status_code, changed.json()["config"]["description"]) == (200, "new")


# --- the description -------------------------------------------------------------------------------------


def schema_of(served: Served) -> dict[str, Any]:
    with served.browser("ann") as ann:
        found: dict[str, Any] = ann.get("/api/v1/openapi.json").json()
    return found


def test_all_references_of_the_description_can_be_followed(served: Served) -> None:
    schema = schema_of(served)
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', str(schema).replace("'", '"')))
    assert "Problem" in references
    assert references <= schema["components"]["schemas"].keys()
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            assert operation["tags"], path
            if path.startswith("/api/") and "422" in operation["responses"]:
                assert list(operation["responses"]["422"]["content"]) == ["application/problem+json"], path


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.route.has_body])
def test_the_example_of_a_request_is_valid(name: str) -> None:
    model, example = METHODS[name].takes, example_of(METHODS[name]) or {}
    assert model.model_validate(example).model_fields_set == {to_snake(field) for field in example}


def test_the_examples_can_be_sent_one_after_another(served: Served) -> None:
    with served.browser("ann") as ann:
        statuses = {}
        for name in ("agents.create", "agents.create_many", "agents.broadcast", "agents.find", "tasks.send"):
            statuses[name] = ask(ann, name, **(example_of(METHODS[name]) or {})).status_code
        for name in ("schedules.create", "mail.send", "events.publish", "meetings.call", "talks.search"):
            statuses[name] = ask(ann, name, **(example_of(METHODS[name]) or {})).status_code
        for name in ("sleep", "remember", "forget", "set_state", "configure"):
            method = METHODS[f"agents.{name}"]
            statuses[name] = ask(ann, f"agents.{name}", agentId="worker-1", **(example_of(method) or {})).status_code
        transcript = (example_of(METHODS["talks.import_talk"]) or {}) | {"profile": "parrot"}
        statuses["import"] = ask(ann, "talks.import_talk", **transcript).status_code
    assert {name: status for name, status in statuses.items() if status not in (200, 201, 204)} == {}


def test_the_page_of_the_api_shows_every_request_and_loads_nothing(served: Served) -> None:
    schema = schema_of(served)
    with served.browser("ann") as ann:
        page = ann.get("/docs/api").text
    for path, operations in schema["paths"].items():
        for verb in operations:
            assert f'<span class="verb">{verb.upper()}</span><code>{path}</code>' in page
    commands = [shlex.split(unescape(one)) for one in re.findall(r"<pre><code>(curl .*?)</code>", page, re.DOTALL)]
    assert {"GET", "POST", "PATCH", "DELETE"} <= {words[2] if words[1] == "-X" else "GET" for words in commands}
    assert all(words[-1].startswith(served.url) for words in commands)
    assert all(json.loads(words[words.index("-d") + 1]) is not None for words in commands if "-d" in words)
    assert to_camel("max_attempts") in page
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!/|#)', page)
