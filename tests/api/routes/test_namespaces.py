"""Namespaces over HTTP: arguments by signature, for the authenticated user, without access to other users (T10, S3).

The matrix of user B with user A's ids is made from the methods, so that a new one can't be forgotten.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic.alias_generators import to_camel

import roost
from roost.client import connect
from roost.core.envelopes.mail import MailPage
from roost.core.monitoring.facts import FactPage
from roost.core.monitoring.figures import FigureReport
from roost.protocol.namespaces import Method, methods
from roost.sync import NAMESPACES
from tests.api.serving import Served, ask, limited, send, serving
from tests.conftest import Open, eventually

OWNED = [name for name in NAMESPACES if name not in ("users", "nodes")]
"""Namespaces in which each user has things of their own; accounts are in tests/api/test_users.py."""
METHODS = [method for name in OWNED for method in methods(name, NAMESPACES[name])]
NEVER = "00000000000000000000000ff"


# --- user B with user A's ids ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Theirs:
    """Ids of things that ann has, by the names of the parameters that ask for them."""

    ids: dict[str, str]

    @classmethod
    def of(cls, service: roost.AgentService, namespace: str = "") -> Theirs:
        cursor = service.monitor.facts("ann").cursor
        service.agents.create("ann", "d", start=False, subscriptions=["heard"])
        schedule = service.schedules.create("ann", "d", "check", every=3600)
        mail = service.mail.send("ann", "agent:d", "subject", "body")
        service.agents.remember("ann", "d", "x marks the spot", key="mine")
        service.events.publish("ann", "nobody_takes_it", {"secret": 1})
        [letter] = service.dead_letters.list("ann")
        hooked = service.webhooks.create("ann", "https://example.com/", events=["WebhookPaused"])
        return cls(
            {
                **(_waiting(service) if namespace in ("approvals", "runs") else {}),
                "agent_id": "d",
                "agent": "agent:ann/d",
                "to": "agent:ann/d",
                "box": "agent:ann/d",
                "sender": "agent:ann/d",
                "task_id": service.tasks.send("ann", "d", "work"),
                "schedule_id": schedule.schedule_id,
                "mail_id": mail,
                "thread_id": service.mail.get("ann", mail).thread_id,
                "letter_id": letter.letter_id,
                "meeting_id": service.meetings.call("ann", "secret", optional=["agent:d"]),
                "who": "agent:ann/d",
                "token_id": service.tokens.create("ann", "hers").token.token_id,
                "webhook_id": hooked.webhook.webhook_id,
                "hook_id": service.hooks.create("ann", event="heard").hook.hook_id,
                "cursor": cursor,
                "arrival": "0",
            }
        )

    def never(self) -> dict[str, str]:
        """Ids of the same kinds that never were."""
        never = {name: one[: -len(NEVER)] + NEVER for name, one in self.ids.items()}
        others = {name: "agent:ann/x" for name, one in self.ids.items() if "ann/" in one}
        return never | others | {name: self.ids[name] for name in ("cursor", "arrival")}


def _waiting(service: roost.AgentService) -> dict[str, str]:
    """A run that waits for ann's word, and one that is over."""
    talk = service.create_talk_session("ann", profile="parrot")
    service.add_message("ann", talk, "hello")
    for _ in service.stream_messages("ann", talk):
        pass
    run = service.get_messages("ann", talk).messages[-1].run_id or ""
    service.add_message("ann", service.create_talk_session("ann", profile="careful"), "it")
    eventually(lambda: service.approvals.list("ann"))
    [approval] = service.approvals.list("ann")
    return {"approval_id": approval.approval_id, "run_id": run, "talk": talk, "talk_session_id": talk}


PAGES = ("before", "after")
"""The id of the last one of the page before: whose it is, tells nobody anything."""
PLACES = {"before": "task_id", "after": "schedule_id"}
OTHERS: dict[str, Any] = {
    "prompt": "x",
    "subject": "x",
    "body": "x",
    "name": "heard",
    "time": 4e9,
    "every": 60,
    "timeout": 0,
    "agent_ids": ["d"],
    "text": "x",
    "state": {"x": 1},
    "key": "mine",
    "result": "x",
    "topic": "x",
    "move": 1,
    "tool": "pay",
    "url": "https://example.com/x",
    "sender": "user:ann",
    "since": 1.7e9,
    "created": "2030-01-01T00:00:00Z",
}
CURSORS = {"monitor.facts": "cursor", "monitor.wait": "cursor", "mail.arrivals": "arrival", "mail.wait": "arrival"}
"""Methods whose `after` is a cursor: the same for every user, and valid for one's own data."""
CLOCKWORK = ("cursor", "at", "since", "until", "width", "bounds")
"""Fields of replies that are the same for every user."""
OWN = {
    "agents.create",
    "agents.create_many",
    "events.publish",
    "mail.import_mail",
    "meetings.call",
    "tokens.create",
    "webhooks.create",
    "hooks.create",
}
"""Methods that create something of the caller's own, whatever others have."""


def methods_of(namespace: str) -> list[Method]:
    """Return the methods, those that create something last: then the caller has it."""
    return sorted((one for one in METHODS if one.namespace == namespace), key=lambda method: method.full_name in OWN)


def arguments(method: Method, ids: dict[str, str]) -> dict[str, Any]:
    """Every id the method can be given, and the least of the rest; a parameter not known here is a KeyError."""
    given: dict[str, Any] = {}
    for parameter in list(inspect.signature(method.coroutine).parameters.values())[2:]:
        if parameter.name in ids:
            given[parameter.name] = ids[parameter.name]
        elif parameter.name == "after" and method.full_name in CURSORS:
            given[parameter.name] = ids[CURSORS[method.full_name]]
        elif parameter.name in PAGES:
            given[parameter.name] = ids[PLACES[parameter.name]]
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            given[parameter.name] = OTHERS[parameter.name]
    if method.has("timeout"):
        given["timeout"] = 0
    if method.full_name == "meetings.say":
        given["to"] = [given["to"]]
    if method.full_name == "schedules.create":
        given["every"] = 60
    if method.full_name == "runs.list":  # of a talk or of an agent, not of both
        del given["agent"]
    return given


def wire(given: dict[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in given.items()}


def answer_of(call: Callable[..., Any], given: dict[str, Any]) -> str:
    """Return what a stranger learns, without the ids that were asked for."""
    try:
        answer = call("bob", **given)
        if isinstance(answer, FactPage | MailPage):
            answer = [*(answer.facts if isinstance(answer, FactPage) else answer.mail)]
        if isinstance(answer, FigureReport):
            answer = [*answer.series]
        told = repr(answer)
    except roost.NotFound as error:
        told = f"not found: {error}"
    for value in given.values():
        told = told.replace(repr(value), "ID").replace(repr(str(value).rpartition("/")[2]), "ID")
    return told


def everything(service: roost.AgentService, ids: dict[str, str]) -> list[Any]:
    found: list[Any] = [service.agents.list("ann"), service.tasks.list("ann"), service.schedules.list("ann")]
    found += [service.mail.inbox("ann", "agent:d"), service.dead_letters.list("ann"), service.events.history("ann")]
    found += [service.agents.memories("ann", "d"), service.approvals.list("ann"), service.tokens.list("ann")]
    found += [service.webhooks.list("ann"), service.hooks.list("ann")]
    found += [service.meetings.view("ann", ids["meeting_id"])]
    return [*found, service.agents.history("ann", "d"), service.mail.thread("ann", ids["thread_id"])]


@pytest.mark.parametrize("namespace", OWNED)
def test_every_method_answers_a_stranger_as_if_it_never_existed(served: Served, namespace: str) -> None:
    theirs = Theirs.of(served.service, namespace)
    before = everything(served.service, theirs.ids)
    with connect(served.url, served.identity.token) as remote:
        for side in (served.service, remote):
            for method in methods_of(namespace):
                if method.full_name in OWN:
                    continue
                call = getattr(getattr(side, namespace), method.name)
                told = {answer_of(call, arguments(method, ids)) for ids in (theirs.ids, theirs.never())}
                assert len(told) == 1, (method.full_name, told)
                [said] = told
                assert said.startswith("not found: ") or said in ("[]", "{}", "0"), (method.full_name, said)
    assert everything(served.service, theirs.ids) == before


@pytest.mark.parametrize("namespace", OWNED)
def test_every_route_takes_the_user_from_the_cookie_alone(served: Served, namespace: str) -> None:
    theirs = Theirs.of(served.service, namespace)
    with served.browser("bob") as bob, served.browser(None) as nobody:
        for method in methods_of(namespace):
            name, given = method.full_name, wire(arguments(method, theirs.ids))
            assert send(nobody, method, given).json()["code"] == "unauthenticated", name
            for user in ("user_id", "userId"):
                refused = send(bob, method, given | {user: "ann"})
                assert (refused.status_code, user in refused.json()["detail"]) == (422, True), name
            sly = send(bob, method, given, **{"Roost-User": "ann"})
            if name not in OWN:
                found = {} if sly.status_code == 404 else sly.json()
                assert not any(value for field, value in found.items() if field not in CLOCKWORK), name


def test_no_other_site_can_make_a_signed_in_browser_act(served: Served) -> None:
    with served.browser("ann", Origin="http://evil.example") as ann:
        assert ask(ann, "agents.create", agentId="d").status_code == 403
    assert served.service.agents.list("ann") == []


# --- arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "given", "told"),
    [
        ("agents.create", {}, "agentId: must be given"),
        ("agents.create", {"agentId": "e", "colour": 1}, "colour: unknown field"),
        ("agents.create", {"agentId": 5}, "agentId: must be a valid string"),
        ("agents.get", {"agentId": "d", "colour": 1}, "colour: unknown parameter"),
        ("agents.stop", {"agentId": "d", "colour": 1}, "colour: unknown field"),
        ("agents.list", {"colour": 1}, "colour: unknown parameter, use limit or after or state"),
        ("agents.list", {"limit": "many"}, "limit: must be a valid integer"),
        ("agents.list", {"limit": "5.5"}, "limit: must be a valid integer"),
        ("agents.list", {"limit": 0}, "the limit must be"),
        ("agents.find", {"text": "x", "limit": "5"}, "limit: must be a valid integer"),
        ("agents.create", {"agentId": "e", "start": "no"}, "start: must be a valid boolean"),
        ("agents.create", {"agentId": "e", "config": {"maxTasks": 1}}, "no setting 'max_tasks'"),
        (
            "agents.create",
            {"agentId": "e", "config": {"userId": "bob"}},
            "config has 'user_id', which is not a setting",
        ),
        ("agents.create", {"agentId": "e", "config": {"self": 1}}, "config has 'self', which is not a setting"),
        ("agents.create", {"agentId": "e", "config": {"agent_id": "f"}}, "config has 'agent_id'"),
        ("agents.sleep", {"agentId": "d", "until": "soon"}, "until"),
        ("agents.sleep", {"agentId": "d", "until": "2030-01-01T09:00"}, "must have a time zone"),
        ("agents.sleep", {"agentId": "d", "wakeOn": {"evnt": "x"}}, "a wake condition cannot be read"),
        ("agents.sleep", {"agentId": "d", "wakeOn": 7}, "a wake condition cannot be read"),
        ("schedules.create", {"agent": "d", "prompt": "x", "every": True}, "every"),
        ("events.history", {"since": "yesterday"}, "since"),
    ],
)
def test_arguments_that_do_not_fit_are_named_and_change_nothing(
    unchanged: Served, method: str, given: dict[str, Any], told: str
) -> None:
    before = unchanged.service.agents.list("ann")
    with unchanged.browser("ann") as ann:
        refused = ask(ann, method, **given)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert told in refused.json()["detail"]
    assert unchanged.service.agents.list("ann") == before


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"name": "x", "data": ' + b"[" * 100_000, b"null", b'"x"'])
def test_a_body_that_is_no_object_is_refused(unchanged: Served, content: bytes) -> None:
    with unchanged.browser("ann") as ann:
        refused = ann.post("/api/v1/events", content=content, headers={"Content-Type": "application/json"})
    assert refused.status_code in (400, 422)
    assert unchanged.service.events.history("ann") == []


def test_what_needs_no_arguments_needs_no_body(served: Served) -> None:
    with served.browser("ann") as ann:
        assert ann.get("/api/v1/agents").json() == {"items": [], "next": None}
        assert ann.get("/api/v1/mail/unread-count").json() == {"count": 0}
        assert ann.post("/api/v1/dead-letters/retry-all").json() == {"count": 0}


@pytest.mark.parametrize(
    "path", ["agents/d/_moved", "agents/d/--init--", "agents/d/nothing", "roost/close", "agent", "agents/d/Stop"]
)
def test_what_is_no_public_method_of_a_face_is_not_there(unchanged: Served, path: str) -> None:
    with unchanged.browser("ann") as ann:
        assert ann.post(f"/api/v1/{path}", json={}).status_code == 404
        assert ann.get(f"/api/v1/{path}").status_code == 404


def test_names_on_the_wire_are_camel_case_and_what_people_wrote_is_left_alone(served: Served) -> None:
    with served.browser("ann") as ann:
        config = {"maxConcurrentTasks": 2, "subscriptions": [{"event": "a.*", "fields": {"some_key": 1}}]}
        made = ask(ann, "agents.create", agentId="d", config=config).json()
        assert (made["agentId"], made["config"]["maxConcurrentTasks"]) == ("d", 2)
        assert made["config"]["subscriptions"] == [{"pattern": "a.*", "fields": {"some_key": 1}}]
        assert made["created"].endswith("Z")
        ask(ann, "events.publish", name="b", data={"some_key": {"otherKey": None}})
        assert ask(ann, "events.history").json()["items"][0]["data"] == {"some_key": {"otherKey": None}}
        schedule = ask(ann, "schedules.create", agent="d", prompt="x", cron="0 9 * * *").json()
        assert schedule["rule"] == {"cron": {"expression": "0 9 * * *", "zone": "UTC"}}
        slept = ask(
            ann, "agents.sleep", agentId="d", until="2040-01-01T09:00:00Z", wakeOn={"any": [{"event": "c"}]}
        ).json()
        assert (slept["state"], slept["sleepUntil"]) == ("sleeping", "2040-01-01T09:00:00Z")
        assert slept["wakeEvents"] == ["c"]
        assert ask(ann, "agents.delete", agentId="d").status_code == 204


# --- waiting ---------------------------------------------------------------------------------------------


def test_a_wait_is_bounded_whatever_is_asked_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.api.endpoints.LONGEST_WAIT", 0.01)
    served.service.agents.create("ann", "d", start=False)
    task = served.service.tasks.send("ann", "d", "never")
    with served.browser("ann") as ann:
        for timeout in ({}, {"timeout": None}, {"timeout": 10_000}):
            assert ask(ann, "tasks.wait", taskId=task, **timeout).json()["status"] == "queued"


@limited(open_requests_per_user=1)
def test_the_open_waits_of_a_user_are_limited(served: Served) -> None:
    served.service.agents.create("ann", "d", start=False)
    task = served.service.tasks.send("ann", "d", "never")

    def wait(client: httpx.Client) -> httpx.Response:
        while (reply := ask(client, "tasks.wait", taskId=task, timeout=20)).status_code == 429:
            pass  # the other one was looking just then
        return reply

    with served.browser("ann") as ann, served.browser("ann") as other, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(wait, other)
        eventually(lambda: ask(ann, "tasks.wait", taskId=task, timeout=0).status_code == 429)
        refused = ask(ann, "tasks.wait", taskId=task, timeout=0)
        assert (refused.status_code, "too many open waits" in refused.text) == (429, True)
        assert ask(ann, "tasks.get", taskId=task).status_code == 200
        served.service.tasks.cancel("ann", task)
        assert waiting.result(20).json()["status"] == "cancelled"


@limited(open_requests_per_user=1)
def test_a_wait_that_is_over_gives_its_place_back(served: Served) -> None:
    with served.browser("ann") as ann:
        for _ in range(3):
            assert ask(ann, "tasks.wait", taskId="task_never", timeout=0).status_code == 404


def test_a_replay_ends_when_its_caller_disconnects(service: Open) -> None:
    again: list[str] = []

    async def endless(turn: roost.Turn) -> AsyncIterator[str]:
        again.append("begun")
        try:
            await asyncio.sleep(100_000)
            yield "never"
        finally:
            again.append("ended")

    with serving(service({"endless": endless})) as served:
        mine = served.service
        talk = mine.create_talk_session("local", profile="endless")
        mine.add_message("local", talk, "go")
        eventually(lambda: again)
        mine.stop("local", talk, wait=5)
        eventually(lambda: mine.runs.list("local", talk=talk))
        again.clear()
        run, body = mine.runs.list("local", talk=talk)[0].run_id, json.dumps({"within": 3600})
        headers = {"Authorization": f"Bearer {served.identity.token}", "Content-Type": "application/json"}
        with closing(HTTPConnection(served.url.removeprefix("http://"))) as asking:
            asking.request("POST", f"/api/v1/runs/{run}/replay", body, headers)
            eventually(lambda: again == ["begun"])
        eventually(lambda: len(again) == 2)
    assert again == ["begun", "ended"]


# --- the description -------------------------------------------------------------------------------------


def test_every_method_has_one_route_in_the_schema_with_its_words_and_types(served: Served) -> None:
    with served.browser("ann") as ann:
        schema = ann.get("/api/v1/openapi.json").json()
    found = {(verb, path): way for path, ways in schema["paths"].items() for verb, way in ways.items()}
    routes = {(method.route.verb.lower(), f"/api/v1/{method.path}") for method in METHODS}
    nested = {(m.route.verb.lower(), f"/api/v1/{one.path(m.route)}") for m in METHODS for one in m.nested}
    assert routes | nested <= set(found)
    assert len(routes) == len(METHODS)
    assert len({way["operationId"] for way in found.values()}) == len(found)
    create = found["post", "/api/v1/agents"]
    assert create["description"].startswith("Create an agent, which lives until it is deleted.")
    models = schema["components"]["schemas"]
    assert models["AgentsCreate"]["required"] == ["agentId"]
    assert "queueDepth" in models["AgentReply"]["properties"]
    assert create["responses"]["201"]["content"]["application/json"]["schema"]["$ref"].endswith("/AgentReply")
    assert not any("userId" in models[name].get("properties", {}) for name in models if not name.endswith("Reply"))


def test_a_talk_with_an_agent_is_made_and_answered_over_http(served: Served) -> None:
    served.service.agents.create("ann", "d", profile="parrot")
    with served.browser("ann") as ann, served.browser("bob") as bob:
        talk = ask(ann, "talks.create_talk_session", agent="d").json()
        assert talk["agent"] == "agent:ann/d"
        ask(ann, "talks.add_message", talkSessionId=talk["talkSessionId"], content="hello there")
        path = f"/api/v1/talks/{talk['talkSessionId']}/messages"
        eventually(lambda: ann.get(path).json()["messages"][-1]["content"] == "hello there ")
        assert ask(bob, "talks.create_talk_session", agent="agent:ann/d").status_code == 404


async def wild(turn: roost.Turn) -> AsyncIterator[str]:
    turn.state["\ud800"] = json.loads("[" * 500 + '"\\udfff"' + "]" * 500)
    yield "done"


def test_a_state_that_is_no_valid_text_can_still_be_read(tmp_path: Path) -> None:
    with roost.open(f"sqlite:///{tmp_path}/wild.db", brains={"wild": wild}) as service, serving(service) as served:
        service.agents.create("ann", "d", profile="wild")
        assert service.tasks.wait("ann", service.tasks.send("ann", "d", "x"), timeout=10).status == "done"
        with served.browser("ann") as ann:
            seen = ask(ann, "agents.inspect", agentId="d")
    assert list(seen.json()["turnState"]) == ["\ufffd"]


def test_servers_of_one_process_call_each_their_own_service(service: Open) -> None:
    with serving(service(name="one.db")) as one, serving(service(name="two.db")) as two:
        for served, agent in ((one, "first"), (two, "second")):
            with served.browser("ann") as ann:
                assert ask(ann, "agents.create", agentId=agent, start=False).status_code == 201
        assert [agent.agent_id for agent in one.service.agents.list("ann")] == ["first"]
        assert [agent.agent_id for agent in two.service.agents.list("ann")] == ["second"]
