"""Routes of methods: `POST /{namespace}/{method}`, and the REST routes of talks, which are declared here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import create_model

from roost.core.talks.branches import Branch
from roost.core.talks.talk import Talk
from roost.protocol.values import Reply, Request, wired

PATH_ID = "talk_id"
"""Name of the id in a path; it is the argument `ID`."""
ID = "talk_session_id"
LONGEST_STOP = 30.0
"""Seconds for which one request may wait for the end of a run."""


@dataclass(frozen=True)
class Route:
    """Route of a method. The id is in the path; other arguments are in the query of a GET, and else in the body."""

    verb: str
    path: str
    name: str = ""
    """Name in OpenAPI; by default that of the namespace and the method."""
    status: int = 200
    request: str = ""
    """Name of the model of the body; by default that of the namespace and the method."""
    needs_body: bool = False
    """Whether the body must be sent although no argument is required."""
    types: Mapping[str, Any] = field(default_factory=dict)
    """Types of arguments on the wire, where they are narrower than in the signature."""
    most: Mapping[str, float] = field(default_factory=dict)
    """Largest values of arguments in one request; clients send no larger ones."""
    reply: Any = None
    """Type of the reply, if it is not the result of the method; the result is then its field `result`."""
    result: str = ""
    shown_by: str = ""
    """Method whose result is the reply: it is called with the result."""
    served_by: str = ""
    """Method that serves this route, if it is another one; this one is a method of clients."""

    @property
    def has_id(self) -> bool:
        return f"{{{PATH_ID}}}" in self.path

    @property
    def has_body(self) -> bool:
        return self.verb not in ("GET", "DELETE")


class Options(Request):
    """Options of a talk; missing ones are those of the profile."""

    model: str | None = None
    temperature: float | None = None
    instructions: str | None = None


_ONE = f"talks/{{{PATH_ID}}}"
_TALK_LIST = create_model("TalkList", __base__=Reply, talks=(wired(list[Talk]), ...))
_BRANCH_LIST = create_model("BranchList", __base__=Reply, branches=(wired(list[Branch]), ...))
_TALKS = {
    "create_talk_session": Route(
        "POST",
        "talks",
        "create_talk",
        201,
        "NewTalk",
        needs_body=True,
        reply=wired(Talk),
        result="talkSessionId",
        shown_by="get_session",
    ),
    "list_sessions": Route("GET", "talks", "list_talks", reply=_TALK_LIST, result="talks"),
    "get_session": Route("GET", _ONE, "get_talk"),
    "configure": Route(
        "PATCH", _ONE, "change_talk", request="TalkChange", needs_body=True, types={"options": Options | None}
    ),
    "rename": Route("PATCH", _ONE, served_by="configure"),
    "delete": Route("DELETE", _ONE, "delete_talk"),
    "add_message": Route("POST", f"{_ONE}/messages", "add_message", 201, "NewMessage"),
    "get_messages": Route("GET", f"{_ONE}/messages", "get_messages"),
    "fork": Route("POST", f"{_ONE}/fork", "fork_talk", 201),
    "edit_message": Route("POST", f"{_ONE}/edit-message", "edit_message", 201),
    "regenerate": Route("POST", f"{_ONE}/regenerate", "regenerate", 201),
    "list_branches": Route("GET", f"{_ONE}/branches", "list_branches", reply=_BRANCH_LIST, result="branches"),
    "get_usage": Route("GET", f"{_ONE}/usage", "get_usage"),
    "export_part": Route("GET", f"{_ONE}/export", "export_part"),
    "import_talk": Route(
        "POST",
        "talks/import",
        "import_talk",
        201,
        "TalkImport",
        reply=wired(Talk),
        result="talkSessionId",
        shown_by="get_session",
    ),
    "search": Route("POST", "talks/search", "search_talks", request="SearchRequest"),
    "stop": Route("POST", f"{_ONE}/stop", "stop", request="StopRequest", most={"wait": LONGEST_STOP}),
}


def route_of(namespace: str, method: str, *, has_id: bool) -> Route:
    """Return the declared route of a method, or the one that follows from its name."""
    if namespace != "talks":
        return Route("POST", f"{namespace}/{method}".replace("_", "-"))
    place = _ONE if has_id else "talks"
    return _TALKS.get(method) or Route("POST", f"{place}/{method.replace('_', '-')}")
