"""Every method × every kind of id × another user, over REST and JSON-RPC: refused as if the thing had never existed.

The matrix is made from the declarations. Each id is tried alone, with valid arguments beside it, so that no other check
hides a missing one. A parameter that is neither in `KINDS` nor in `PLAIN` fails a test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

import roost
from roost.api.rpc import agent_control
from roost.api.rpc.methods import rpc_name
from roost.api.subscriptions import SubscribeParams, SubscriptionTopic
from roost.protocol.namespaces import Method
from roost.protocol.routes import NestedRoute
from tests.api.conftest import BRAINS, deploy
from tests.api.rpc.connection import Client, opened
from tests.api.serving import METHODS, Served, send, serving
from tests.api.test_tokens import NEEDED
from tests.conftest import QUICK, eventually

UNLIMITED = {"request_burst": 1e9, "address_request_burst": 1e9}
HERS, MARK = "hidden-agent", "confidential"
"""Id of ann's agent, and a word in everything that ann has written."""
KINDS = {
    "talkSessionId": "talk",
    "talk": "talk",
    "agentId": "agent",
    "agentIds": "agent",
    "ids": "agent",
    "agent": "address",
    "to": "address",
    "who": "address",
    "by": "address",
    "box": "address",
    "sender": "address",
    "seenBy": "address",
    "participant": "address",
    "moderator": "address",
    "required": "address",
    "optional": "address",
    "taskId": "task",
    "scheduleId": "schedule",
    "mailId": "mail",
    "replyTo": "mail",
    "threadId": "thread",
    "meetingId": "meeting",
    "approvalId": "approval",
    "runId": "run",
    "letterId": "letter",
    "tokenId": "token",
    "webhookId": "webhook",
    "hookId": "hook",
    "attachments": "attachment",
    "nodeId": "node",
    "key": "key",
    "tool": "tool",
    "group": "group",
}
"""Kinds of the parameters that name something."""
KINDS_OF_METHODS = {"users": {"name": "user"}}
"""The same in single namespaces."""
PLAIN = frozenset(
    re.findall(
        r"\w+",
        """
        at after before body busy content created cron event events expires fault floor format game headers
        instructions kind minutes missed model name note outcome overlap phase priority profile prompt query readAt
        reason result role schedule scopes since state status subject subscription task text time title topic until
        untilTime url wakeEvents wakeOnMailPriority zone
        """,
    )
)
"""Texts that name nothing of a user: contents, choices, times, places in a list."""
LISTS = frozenset({"agentIds", "required", "optional", "attachments"})
TO_MANY = frozenset({"meetings.say"})
"""Methods whose `to` is a list."""
OWN_NAMES = frozenset({"agents.create", "agents.create_many", "async.createAgent", "mail.import_mail"})
"""Methods by which a stranger gets an agent or a mail of the same name."""
NEEDED_BY_CLIENTS = {"task": "x", "schedule": "* * * * *", "event": "x"}
STREAMS = {
    "/api/v1/talks/{talk_id}/stream": "talk",
    "/api/v1/agents/{agent_id}/stream": "agent",
    "/api/v1/meetings/{meeting_id}/stream": "meeting",
    "/api/v1/attachments/{attachment_id}": "attachment",
    "/v1/models/{model_id}": "address",
}
"""Routes of things that are served by no method."""


@dataclass
class House:
    """A server on which ann has one thing of each kind, and bob makes things of his own."""

    served: Served
    ids: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By kind: names of things of ann's, each with one that never existed."""

    def own(self, kind: str) -> Any:
        """Return the name of a thing of bob's, which may be changed."""
        service = self.served.service
        make: dict[str, Callable[[], Any]] = {
            "talk": lambda: service.create_talk_session("bob", profile="parrot"),
            "agent": lambda: "his",
            "address": lambda: "agent:his",
            "mail": lambda: service.mail.send("bob", "user:bob", "x", "x"),
            "meeting": lambda: service.meetings.call("bob", "x", optional=["agent:his"], deadline=600),
            "schedule": lambda: service.schedules.create("bob", "his", "x", every=3600).schedule_id,
            "key": lambda: "his-key",
            "tool": lambda: "x",
        }
        return make[kind]()

    def forget(self, name: str) -> None:
        """Delete bob's agent of this name, and his mail."""
        service = self.served.service
        with suppress(roost.NotFound, roost.Invalid):
            service.agents.delete("bob", name)
        for mail in service.mail.inbox("bob"):
            service.mail.delete("bob", mail.mail_id)

    def snapshot(self) -> list[Any]:
        """Return everything of ann's that another user might change.

        The inbox is without posts of the meeting: participants repeat what nobody has confirmed. Its view is there.
        """
        service, ids = self.served.service, {kind: pairs[0][0] for kind, pairs in self.ids.items()}
        agent = service.agents.get("ann", HERS)
        return [
            [(talk.talk_session_id, talk.title) for talk in service.list_sessions("ann")],
            service.get_messages("ann", ids["talk"]).messages,
            (agent.state, agent.config, [one for one in service.agents.inbox("ann", HERS) if one.kind != "meeting"]),
            (service.agents.memories("ann", HERS), service.agents.history("ann", HERS)),
            (service.tasks.list("ann"), service.schedules.list("ann"), service.events.history("ann")),
            (service.mail.inbox("ann"), service.mail.sent("ann"), service.mail.inbox("ann", f"agent:{HERS}")),
            (service.meetings.view("ann", ids["meeting"]), service.approvals.list("ann", all=True)),
            (service.approvals.permissions("ann"), service.dead_letters.list("ann"), service.runs.list("ann")),
            (service.tokens.list("ann"), service.webhooks.list("ann"), service.hooks.list("ann")),
            service.get_attachment("ann", ids["attachment"]),
        ]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    url, limits = f"sqlite:///{tmp_path_factory.mktemp('strangers')}/roost.db", {**vars_of(QUICK), **UNLIMITED}
    with (
        roost.open(url, brains=BRAINS, limits=roost.Limits(**limits), tools=[deploy]) as service,
        serving(service, limits=limits) as served,
    ):
        service.agents.create("bob", "his", start=False)
        yield House(served, {kind: _with_strangers(kind, one) for kind, one in _furnished(service).items()})


def vars_of(limits: roost.Limits) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in ("drain", "stop_patience")}


def _furnished(service: roost.AgentService) -> dict[str, str]:
    talk = service.create_talk_session("ann", profile="parrot", title=MARK)
    service.add_message("ann", talk, MARK, key="her-key")
    for _ in service.stream_messages("ann", talk):
        pass
    service.agents.create("ann", "asking", profile="careful")
    task = service.tasks.send("ann", "asking", MARK)
    service.approvals.allow_always("ann", asked_in(service).approval_id)
    service.tasks.wait("ann", task)
    service.add_message("ann", service.create_talk_session("ann", profile="careful", title=MARK), MARK)
    approval = asked_in(service).approval_id
    service.agents.create("ann", HERS, start=False, description=MARK, groups=["her-group"])
    service.agents.remember("ann", HERS, MARK, key="her-key")
    service.events.publish("ann", MARK, {MARK: 1})
    mail = service.mail.send("ann", f"agent:{HERS}", MARK, MARK, key="her-key")
    found = {
        "talk": talk,
        "agent": HERS,
        "address": f"agent:ann/{HERS}",
        "task": service.tasks.send("ann", HERS, MARK, key="her-key"),
        "schedule": service.schedules.create("ann", HERS, MARK, every=86_400).schedule_id,
        "mail": mail,
        "thread": service.mail.get("ann", mail).thread_id,
        "meeting": service.meetings.call("ann", MARK, optional=[f"agent:{HERS}"], deadline=86_400),
        "approval": approval,
        "run": service.runs.list("ann", talk=talk)[0].run_id,
        "letter": service.dead_letters.list("ann")[0].letter_id,
        "token": service.tokens.create("ann", MARK).token.token_id,
        "webhook": service.webhooks.create(
            "ann", f"https://{MARK}.example/", events=["WebhookPaused"]
        ).webhook.webhook_id,
        "hook": service.hooks.create("ann", event=MARK).hook.hook_id,
        "attachment": service.add_attachment("ann", f"{MARK}.txt", MARK.encode()).attachment_id,
        "node": "node_1",
        "key": "her-key",
        "tool": "deploy",
        "group": "her-group",
        "user": "ann",
    }
    eventually(lambda: len(service.agents.inbox("ann", HERS)) == 4)  # also both posts of the meeting
    return found


def asked_in(service: roost.AgentService) -> roost.Approval:
    return eventually(lambda: service.approvals.list("ann"))[0]


def _with_strangers(kind: str, hers: str) -> list[tuple[str, str]]:
    """Return ways to name a thing, each with the name of one that never existed: at the same place in every order."""
    if kind == "agent":
        return [(f"{head}{HERS}", f"{head}hidden-never") for head in ("", "ann/", "agent:ann/")]
    if kind == "address":
        heads = ("agent:ann/", "agent:", "")
        return [*((f"{head}{HERS}", f"{head}hidden-never") for head in heads), ("user:ann", "user:amy")]
    return [(hers, hers[:-1] + ("0" if hers[-1] != "0" else "1"))]


# --- the declarations ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A method, by one of its routes or names, and the parameter that names something of ann's."""

    name: str
    params: type[BaseModel]
    place: str
    kind: str
    method: Method | None = None
    nested: NestedRoute | None = None

    def has(self, way: str) -> bool:
        """Return whether this protocol has the method."""
        return self.nested is None if way == "rpc" else self.method is not None

    def arguments(self, house: House, value: Any) -> dict[str, Any]:
        """Return the least that the method takes, with things of bob's, and this value."""
        schema = self.params.model_json_schema()
        given = {one: self._needed(house, one) for one in schema.get("required", ())}
        given |= {"timeout": 0} if "timeout" in schema["properties"] else {}
        is_list = self.place in LISTS or (self.place == "to" and self.name in TO_MANY)
        return given | {self.place: [value] if is_list else value}

    def _needed(self, house: House, place: str) -> Any:
        kind = None if place == self.place else kind_of(self.name, place)
        return NEEDED_BY_CLIENTS.get(place, NEEDED.get(place, "x")) if kind is None else house.own(kind)


def kind_of(method: str, place: str) -> str | None:
    return KINDS_OF_METHODS.get(method.partition(".")[0], {}).get(place, KINDS.get(place))


def texts(params: type[BaseModel]) -> Iterator[str]:
    """Yield the parameters that may be given a text, or several."""
    for name, found in params.model_json_schema()["properties"].items():
        if any(one.get("type") in ("string", "array") for one in (found, *found.get("anyOf", ()))):
            yield name


def methods() -> Iterator[tuple[str, type[BaseModel], Method | None]]:
    """Yield every method by its name: those of the service, and those of existing clients."""
    for name, method in METHODS.items():
        yield name, method.params, method
    by_rpc = {rpc_name(one): one for one in METHODS.values()}
    for alias, name in agent_control.ALIASES.items():
        yield alias, by_rpc[name].params, None
    for name, params in agent_control.PARAMS.items():
        yield name, params, None


def cases() -> Iterator[Case]:
    for name, params, method in methods():
        for place in texts(params):
            if (kind := kind_of(name, place)) is not None:
                yield Case(name, params, place, kind, method)
                for nested in method.nested if method else ():
                    if to_camel(nested.argument) == place:
                        yield Case(name, params, place, kind, method, nested)


def test_every_parameter_is_a_kind_of_id_or_names_nothing() -> None:
    found = {place for _, params, _ in methods() for place in texts(params)}
    found |= set(texts(SubscribeParams))
    assert found - PLAIN == KINDS.keys()
    assert found >= PLAIN


def test_every_route_with_an_id_is_in_the_matrix(house: House) -> None:
    with house.served.browser("bob") as browser:
        paths = browser.get("/api/v1/openapi.json").json()["paths"]
    known = {f"/api/v1/{method.path}" for method in METHODS.values()}
    known |= {f"/api/v1/{nested.path(method.route)}" for method in METHODS.values() for nested in method.nested}
    with_ids = {path for path in paths if "{" in path}
    assert with_ids <= known | STREAMS.keys()
    assert STREAMS.keys() <= with_ids


# --- the matrix ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """Status and text that a stranger gets, without the names that were given, new ids and times."""

    status: int
    text: str


VOLATILE = re.compile(r"\b[a-z]+_[0-9a-z]{20,}\b|\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)|\b\d+\.\d+\b")


def learned(status: int, text: str, value: str) -> Answer:
    for one in (value, value.rpartition(":")[2], value.rpartition("/")[2]):
        text = re.sub(rf"\b{re.escape(one)}\b", "ID", text)
    return Answer(min(status, 200) if status < 300 else status, VOLATILE.sub("…", text))


def over_rest(client: httpx.Client, case: Case, given: dict[str, Any], value: str) -> Answer:
    assert case.method is not None
    if case.nested is None:
        response = send(client, case.method, given)
    else:
        path = case.nested.path(case.method.route).replace(f"{{{case.nested.place}}}", value)
        body = {name: one for name, one in given.items() if name != case.place}
        has_body = case.method.route.has_body
        response = client.request(
            case.method.route.verb,
            f"/api/v1/{path}",
            params={} if has_body else body,
            json=body if has_body else None,
        )
    return learned(response.status_code, response.text, value)


def over_rpc(client: Client, case: Case, given: dict[str, Any], value: str) -> Answer:
    reply = client.ask(rpc_name(case.method) if case.method else case.name, **given)
    error = reply.get("error")
    status = 200 if error is None else {-32602: 422}.get(error["code"], error["code"])
    return learned(status, json.dumps(reply.get("result") if error is None else error), value)


def answers_of(
    house: House, case: Case, call: Callable[[Case, dict[str, Any], str], Answer], pair: Any
) -> list[Answer]:
    """Return the answers about a thing of ann's, and about one that never existed."""
    answers = []
    for value in pair:
        answers.append(call(case, case.arguments(house, value), value))
        if case.name in OWN_NAMES and answers[-1].status < 400:
            house.forget(value)
    return answers


def pairs_of(house: House) -> Iterator[tuple[Case, tuple[str, str]]]:
    for case in cases():
        for pair in house.ids[case.kind]:
            yield case, pair


def test_every_method_answers_a_stranger_as_if_it_never_existed(house: House) -> None:
    before, wrong = house.snapshot(), list[tuple[object, ...]]()
    hers = {pairs[0][0] for pairs in house.ids.values() if len(pairs[0][0]) > 20}
    with house.served.browser("bob") as browser, opened(house.served, "bob") as socket:
        client = Client(socket)
        ways = {"rest": partial(over_rest, browser), "rpc": partial(over_rpc, client)}
        for case, pair in pairs_of(house):
            told = {way: answers_of(house, case, call, pair) for way, call in ways.items() if case.has(way)}
            name = (case.name, case.nested and case.nested.parent, case.place, pair[0])
            wrong += [(*name, way, *both) for way, both in told.items() if both[0] != both[1]]
            all_told = [one for both in told.values() for one in both]
            wrong += [(*name, one) for one in all_told if one.status >= 500 or MARK in one.text]
            wrong += [(*name, one) for one in all_told if any(other in one.text for other in hers)]
            if len({one.status for one in all_told}) > 1 and "/" not in pair[0]:  # no path has it
                wrong.append((*name, told))
    assert wrong == []
    for now, then in zip(house.snapshot(), before, strict=True):
        assert now == then


def test_no_stream_and_no_subscription_tells_a_stranger_of_a_thing(house: House) -> None:
    before = house.snapshot()
    with house.served.browser("bob") as browser, opened(house.served, "bob") as socket:
        client = Client(socket)
        for path, kind in STREAMS.items():
            for pair in house.ids[kind]:
                told = [browser.get(re.sub(r"{\w+}", quote(one, safe=""), path)) for one in pair]
                theirs, never = (learned(one.status_code, one.text, name) for one, name in zip(told, pair, strict=True))
                assert theirs == never, (path, pair)
                assert theirs.status == 404, (path, pair)
        for place in ("talkSessionId", "meetingId", "agentId", "seenBy"):
            for topic, pair in ((topic, pair) for topic in SubscriptionTopic for pair in house.ids[KINDS[place]]):
                own = {"talkSessionId": house.own("talk"), "meetingId": house.own("meeting"), "agentId": "his"}
                answers = []
                for name in pair:
                    reply = client.ask("subscribe", topic=topic, subscription="s", **(own | {place: name}))
                    answers.append(learned(200 if "result" in reply else 404, json.dumps({**reply, "id": 0}), name))
                    if "result" in reply:
                        client.call("unsubscribe", subscription="s")
                assert answers[0] == answers[1], (topic, place, pair)
        assert MARK not in json.dumps(client.notified)
    assert house.snapshot() == before
