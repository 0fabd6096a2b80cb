"""REST routes of methods. They follow from the names of the namespace and the method; exceptions are declared here.

`agents.list` is `GET /agents`, `agents.get` is `GET /agents/{agent_id}`, `agents.sleep` is `POST
/agents/{agent_id}/sleep`, and so on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic.alias_generators import to_camel

from roost.core.talks.talk import Talk
from roost.core.values.traits import ReplyField
from roost.protocol.values import Request, wired

LONGEST_STOP = 30.0
"""Seconds for which one request may wait for the end of a run."""
PLACES = {"talk_session_id": "talk_id"}
"""Names of arguments in paths, where they differ."""


@dataclass(frozen=True)
class Route:
    """Route of a method. One argument may be in the path; others are in the query of a GET, and else in the body."""

    verb: str
    path: str
    argument: str = ""
    """Argument in the path."""
    name: str = ""
    """Name in OpenAPI; by default that of the namespace and the method."""
    status: int = 200
    request: str = ""
    """Name of the model of the body; by default that of the namespace and the method."""
    needs_body: bool = False
    """True if the body must be sent although no argument is required."""
    types: Mapping[str, Any] = field(default_factory=dict)
    """Types of arguments on the wire, where they are narrower than in the signature."""
    most: Mapping[str, float] = field(default_factory=dict)
    """Largest values of arguments in one request; clients send no larger ones."""
    result: str = ""
    """Field of the reply that holds the result; by default the reply is the result, and a list is in `items`."""
    shown_by: str = ""
    """Method whose result is the reply: it is called with the result, which is the field `result` of its reply."""
    shown_as: Any = None
    """Type of the result of `shown_by`."""
    served_by: str = ""
    """Method that serves this route, if it is another one; this one is a method of clients."""

    @property
    def has_body(self) -> bool:
        return self.verb not in ("GET", "DELETE")


@dataclass(frozen=True, slots=True)
class NestedRoute:
    """Another route of a method: below an agent or a talk, which is the value of one of its arguments."""

    parent: str
    place: str
    """Name of the parent's id in the path."""
    argument: str
    prefix: str = ""
    """Start of the argument's value, before the id."""

    def path(self, route: Route) -> str:
        return f"{self.parent}/{{{self.place}}}/{route.path}"


class Options(Request):
    """Options of a talk; missing ones are those of the profile."""

    model: str | None = None
    temperature: float | None = None
    instructions: str | None = None


_IDS = {
    "talks": "talk_session_id",
    "agents": "agent_id",
    "tasks": "task_id",
    "schedules": "schedule_id",
    "sleep_scheduler": "agent_id",
    "mail": "mail_id",
    "events": "event_id",
    "meetings": "meeting_id",
    "dead_letters": "letter_id",
    "approvals": "approval_id",
    "runs": "run_id",
    "tokens": "token_id",
    "users": "name",
    "webhooks": "webhook_id",
    "hooks": "hook_id",
    "nodes": "node_id",
}
_VERBS = {
    "list": "GET",
    "get": "GET",
    "create": "POST",
    "send": "POST",
    "call": "POST",
    "publish": "POST",
    "configure": "PATCH",
    "change": "PATCH",
    "delete": "DELETE",
    "drop": "DELETE",
}
"""Methods of a collection, or of one thing: their name is not in the path."""
_CREATED = frozenset({"create", "send", "call", "publish"})
_ONE = "talks/{talk_id}"
_ROUTES = {
    "talks.create_talk_session": Route(
        "POST",
        "talks",
        name="create_talk",
        status=201,
        request="NewTalk",
        needs_body=True,
        shown_by="get_session",
        shown_as=wired(Talk),
    ),
    "talks.list_sessions": Route("GET", "talks", name="list_talks"),
    "talks.get_session": Route("GET", _ONE, name="get_talk"),
    "talks.configure": Route(
        "PATCH", _ONE, name="change_talk", request="TalkChange", needs_body=True, types={"options": Options | None}
    ),
    "talks.rename": Route("PATCH", _ONE, served_by="configure"),
    "talks.delete": Route("DELETE", _ONE, name="delete_talk"),
    "talks.add_message": Route("POST", f"{_ONE}/messages", name="add_message", status=201, request="NewMessage"),
    "talks.get_messages": Route("GET", f"{_ONE}/messages", name="get_messages"),
    "talks.fork": Route("POST", f"{_ONE}/fork", name="fork_talk", status=201),
    "talks.edit_message": Route("POST", f"{_ONE}/edit-message", name="edit_message", status=201),
    "talks.regenerate": Route("POST", f"{_ONE}/regenerate", name="regenerate", status=201),
    "talks.list_branches": Route("GET", f"{_ONE}/branches", name="list_branches"),
    "talks.get_usage": Route("GET", f"{_ONE}/usage", name="get_usage"),
    "talks.export_part": Route("GET", f"{_ONE}/export", name="export_part"),
    "talks.import_talk": Route(
        "POST",
        "talks/import",
        name="import_talk",
        status=201,
        request="TalkImport",
        needs_body=True,
        shown_by="get_session",
        shown_as=wired(Talk),
    ),
    "talks.search": Route("POST", "talks/search", name="search_talks", request="SearchRequest"),
    "talks.stop": Route("POST", f"{_ONE}/stop", name="stop", request="StopRequest", most={"wait": LONGEST_STOP}),
    "agents.remember": Route("POST", "agents/{agent_id}/memories", status=201),
    "agents.set_state": Route("PUT", "agents/{agent_id}/state"),
    "agents.find": Route("POST", "agents/find"),
    "approvals.in_talk": Route("GET", f"{_ONE}/approvals", argument="talk_session_id"),
    "events.history": Route("GET", "events"),
    "mail.inbox": Route("GET", "mail"),
    "mail.sent": Route("GET", "mail/sent"),
    "mail.import_mail": Route("POST", "mail/import"),
    "mail.thread": Route("GET", "mail/threads/{thread_id}", argument="thread_id"),
    "meetings.view": Route("GET", "meetings/{meeting_id}"),
    "users.add": Route("POST", "users", status=201),
    "users.set_role": Route("PUT", "users/{name}/role"),
    "users.audit": Route("GET", "audit"),
    "users.export": Route("GET", "users/{name}/export"),
    "hooks.create": Route("POST", "hooks", status=201, needs_body=True),
    "tokens.revoke": Route("DELETE", "tokens/{token_id}"),
    "sleep_scheduler.get_next_wake_time": Route("GET", "agents/{agent_id}/next-wake"),
    "sleep_scheduler.schedule_wake": Route("PUT", "agents/{agent_id}/next-wake"),
    "sleep_scheduler.cancel_wake": Route("DELETE", "agents/{agent_id}/next-wake"),
}
_OF_AGENT = NestedRoute("agents", "agent_id", "agent", "agent:")
NESTED = {
    "tasks.list": (_OF_AGENT,),
    "tasks.send": (replace(_OF_AGENT, argument="to"),),
    "schedules.list": (_OF_AGENT,),
    "schedules.create": (_OF_AGENT,),
    "mail.inbox": (replace(_OF_AGENT, argument="box"),),
    "dead_letters.list": (_OF_AGENT,),
    "runs.list": (_OF_AGENT, NestedRoute("talks", "talk_id", "talk")),
}
"""Further routes of methods, below one agent or one talk."""
_CURSORS = {
    "agents.history": "change_id",
    "agents.inbox": "envelope_id",
    "agents.memories": "key",
    "users.list": "user_id",
    "users.audit": "entry_id",
    "webhooks.deliveries": "delivery_id",
}


def route_of(
    namespace: str, method: str, parameters: Collection[str], *, reads: bool, result: ReplyField | None
) -> Route:
    """Return the declared route of a method, or the one that follows from its name, parameters and traits."""
    known = _ROUTES.get(f"{namespace}.{method}") or _derived(namespace, method, parameters, reads=reads)
    argument = known.argument or _IDS.get(namespace, "")
    field = "" if result is None else result.name or to_camel(_IDS[namespace])
    return replace(known, argument=argument if f"{{{place_of(argument)}}}" in known.path else "", result=field)


def place_of(argument: str) -> str:
    """Return the name of an argument in a path."""
    return PLACES.get(argument, argument)


def cursor_of(namespace: str, method: str) -> str:
    """Return the attribute of a listed thing by which the next page is read."""
    return _CURSORS.get(f"{namespace}.{method}") or _IDS.get(namespace, "")


def _derived(namespace: str, method: str, parameters: Collection[str], *, reads: bool) -> Route:
    argument = _IDS.get(namespace, "")
    path = namespace.replace("_", "-")
    if argument in parameters and method not in _CREATED:
        path += f"/{{{place_of(argument)}}}"
    verb = _VERBS.get(method) or ("GET" if reads else "POST")
    if method not in _VERBS:
        path += f"/{method.replace('_', '-')}"
    return Route(verb, path, status=201 if method in _CREATED else 200)
