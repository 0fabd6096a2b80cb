"""S6: every route, asked by its owner, by another user, by nobody and by another site."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from pydantic.alias_generators import to_camel

import roost
from roost.protocol.namespaces import methods
from roost.sync import NAMESPACES
from tests.api.conftest import deploy
from tests.api.serving import Served, serving
from tests.conftest import Open, eventually

FAST = roost.Limits(drain=0.5, stop_patience=0.3, request_burst=1e9, address_request_burst=1e9)
NEVER = {
    "agentId": "nobody",
    "taskId": "task_0000000000000000000000",
    "mailId": "mail_0000000000000000000000000",
    "scheduleId": "schedule_000000000000000000",
    "meetingId": "meeting_0000000000000000000",
    "approvalId": "approval_000000000000000000",
    "runId": "run_00000000000000000000000",
    "letterId": "letter_0000000000000000000",
    "talkId": "talk_0000000000000000000000",
    "threadId": "mail_00000000000",
}
TALK_ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/api/v1/talks/{talkId}", None),
    ("PATCH", "/api/v1/talks/{talkId}", {"title": "taken"}),
    ("GET", "/api/v1/talks/{talkId}/messages", None),
    ("POST", "/api/v1/talks/{talkId}/messages", {"content": "taken"}),
    ("GET", "/api/v1/talks/{talkId}/stream", None),
    ("POST", "/api/v1/talks/{talkId}/stop", {}),
    ("DELETE", "/api/v1/talks/{talkId}", None),
]


async def careful(turn: roost.Turn) -> Any:
    if turn.text == "fail":
        raise ZeroDivisionError
    if turn.text == "ask":
        yield await turn.call_tool("deploy", {"what": "it"})
    yield "done"


@dataclass
class House:
    """A server with things of ann's in it."""

    served: Served
    ids: dict[str, str]

    def snapshot(self) -> Any:
        """Everything of ann's that another user might change."""
        own = self.served.service
        agent = own.agents.get("ann", "secret-agent")
        return (
            [talk.title for talk in own.list_sessions("ann")],
            [m.content for m in own.get_messages("ann", self.ids["talkId"]).messages],
            (agent.state, agent.config),
            sorted((task.task_id, task.status) for task in own.tasks.list("ann")),
            sorted(mail.mail_id for mail in own.mail.inbox("ann")),
            sorted(one.schedule_id for one in own.schedules.list("ann")),
            [one.approval_id for one in own.approvals.list("ann")],
        )


@pytest.fixture
def house(service: Open) -> Iterator[House]:
    opened = service({"careful": careful}, limits=FAST, tools=[deploy])
    with serving(opened, limits=FAST) as served:
        yield House(served, _furnished(opened))


def _furnished(own: roost.AgentService) -> dict[str, str]:
    talk = own.create_talk_session("ann", profile="careful", title="Ann's secret")
    own.add_message("ann", talk, "ask")
    own.agents.create("ann", "secret-agent", profile="careful")
    task = own.tasks.send("ann", "secret-agent", "go")
    own.tasks.wait("ann", task, timeout=20)
    own.agents.stop("ann", "secret-agent")
    schedule = own.schedules.create("ann", "secret-agent", "tick", every=86_400)
    mail_id = own.mail.send("ann", "user:ann", "secret", "secret words")
    meeting = own.meetings.call("ann", "secret topic", optional=["agent:secret-agent"])
    approvals = eventually(lambda: own.approvals.list("ann"))
    run = own.agents.inspect("ann", "secret-agent").runs[0].run_id
    return {
        "talkId": talk,
        "agentId": "secret-agent",
        "taskId": task,
        "scheduleId": schedule.schedule_id,
        "mailId": mail_id,
        "threadId": mail_id,
        "approvalId": approvals[0].approval_id,
        "runId": run,
        "meetingId": meeting,
        "letterId": NEVER["letterId"],
    }


def requests() -> Iterator[tuple[str, str, Any]]:
    """Every route, with a body that has all fields it needs; ids stand as {names}."""
    yield from TALK_ROUTES
    for face, kind in NAMESPACES.items():
        for method in methods(face, kind):
            if method.name in ("facts", "follow"):
                continue
            model = method.takes.model_json_schema()
            fields = {n: example(n, model["properties"][n]) for n in model.get("required", [])}
            if "timeout" in model["properties"]:
                fields["timeout"] = 0
            path = re.sub(r"{(\w+)}", lambda found: f"{{{to_camel(found[1])}}}", method.path)
            yield method.route.verb, f"/api/v1/{path}", fields


def example(name: str, field: dict[str, Any]) -> Any:
    if name in ("to", "agent", "who"):
        return "agent:ann/{agentId}"
    if name in NEVER:
        return f"{{{name}}}"
    if name in ("agentIds", "participants", "invited"):
        return ["{agentId}"]
    for kind in (field, *field.get("anyOf", ())):
        match kind.get("type"):
            case "string":
                return "2030-01-01T00:00:00Z" if kind.get("format") == "date-time" else "x"
            case "integer" | "number":
                return 1
            case "boolean":
                return True
            case "array":
                return ["x"]
            case "object":
                return {}
    return "x"


def ask(client: httpx.Client, asked: tuple[str, str, Any], ids: dict[str, str]) -> httpx.Response:
    method, path, body = asked
    text = json.dumps(body)
    for name, value in ids.items():
        path, text = path.replace(f"{{{name}}}", value), text.replace(f"{{{name}}}", value)
    given = None if body is None else json.loads(text)
    if method in ("GET", "DELETE"):
        return client.request(method, path, params=given, timeout=30)
    return client.request(method, path, json=given, timeout=30)


def alike(text: str, ids: dict[str, str]) -> str:
    for value in ids.values():
        text = text.replace(value, "<id>")
    return text


def test_another_user_is_answered_as_if_nothing_existed_and_changes_nothing(house: House) -> None:
    before, secrets = house.snapshot(), ("Ann's secret", "secret words")
    asked = list(requests())
    assert len(asked) > 80
    with house.served.browser("bob") as bob:
        for one in asked:
            theirs, never = ask(bob, one, house.ids), ask(bob, one, NEVER)
            assert theirs.status_code == never.status_code, (one, theirs.text, never.text)
            assert not [secret for secret in secrets if secret in theirs.text], one
            if theirs.status_code >= 400:
                assert alike(theirs.text, house.ids) == alike(never.text, NEVER), one
    assert house.snapshot() == before


def test_unauthenticated_and_cross_site_requests_are_refused_at_every_route(house: House) -> None:
    before = house.snapshot()
    asked = list(requests())
    with (
        house.served.browser(None) as nobody,
        house.served.command_line(Authorization="Bearer wrong") as forged,
        house.served.browser("ann", Origin="http://evil.example") as lured,
    ):
        for one in asked:
            assert ask(nobody, one, house.ids).status_code == 401, one
            assert ask(forged, one, house.ids).status_code == 401, one
            if one[0] != "GET":
                assert ask(lured, one, house.ids).status_code == 403, one
    assert house.snapshot() == before


def test_the_owner_is_answered(house: House) -> None:
    """So the matrix asks for what is there: with wrong bodies all would be refused alike."""
    reading = [one for one in requests() if one[0] == "GET" and "/talks/" not in one[1]]
    with house.served.browser("ann") as ann:
        statuses = {one[1]: ask(ann, one, house.ids).status_code for one in reading}
    found = [path for path, status in statuses.items() if status == 200]
    assert len(found) >= 10, statuses
