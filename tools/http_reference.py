"""Write the generated part of the HTTP reference: the table of requests in `docs/reference/http.md`.

It follows from the same declarations as the routes. Run it after a change of a method: `make generate`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from roost.protocol.namespaces import Method, methods
from roost.protocol.routes import NestedRoute
from roost.sync import NAMESPACES

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "http.md"
HEADING = "\n## Agents, tasks, schedules, mail, events, meetings, dead letters\n"
HEAD = "| request | arguments | returns |\n| --- | --- | --- |\n"
REMARKS = {
    "agents.broadcast": "the number of recipients",
    "agents.forget": "whether it existed",
    "meetings.minutes": "Markdown",
    "sleep_scheduler.get_next_wake_time": "a time, or `null`",
    "users.delete": "repeat the request until it `isOver`, or until 404",
    "schedules.next_times": "times",
    "users.export": "`after` is that of the next part, or none",
}
STREAMS = {
    "agents": ("agents/{agent_id}/stream", ()),
    "mail": ("mail/stream", ()),
    "meetings": ("meetings/{meeting_id}/stream", ("seenBy",)),
    "monitor": ("monitor/stream", ()),
}
"""Streams of server-sent events, which are no methods."""


def main() -> None:
    PAGE.write_text(with_methods(PAGE.read_text()))


def with_methods(page: str) -> str:
    """Return the page with a row for each route of a method in the table below the heading."""
    before, _, rest = page.partition(HEADING)
    text, _, table = rest.partition(HEAD)
    _, _, after = table.partition("\n\n")
    found = "".join(row for name, kind in NAMESPACES.items() for row in rows(name, methods(name, kind)))
    return f"{before}{HEADING}{text}{HEAD}{found}\n{after}"


def rows(namespace: str, found: Sequence[Method]) -> Iterator[str]:
    for method in found:
        for nested in (None, *method.nested):
            yield _row(method, nested)
    if namespace in STREAMS:
        path, queried = STREAMS[namespace]
        arguments = ", ".join((*(f"`{name}`" for name in queried), "`after` or the header `Last-Event-ID`"))
        yield f"| `GET /api/v1/{path}` | {arguments} | [server-sent events](#streams) |\n"


def _row(method: Method, nested: NestedRoute | None) -> str:
    path = method.path if nested is None else nested.path(method.route)
    names = [name for name in method.takes.model_fields if nested is None or name != nested.argument]
    arguments = ", ".join(f"`{to_camel(name)}`" for name in names)
    return f"| `{method.route.verb} /api/v1/{path}` | {arguments} | {_returned(method)} |\n"


def _returned(method: Method) -> str:
    kind = typing.get_type_hints(method.coroutine)["return"]
    if kind is type(None):
        return "204"
    parts = ["201"] if method.route.status == 201 else []
    parts += _fields(method, kind)
    remark = REMARKS.get(method.full_name)
    return ", ".join(parts) + (f"; {remark}" if remark else "")


def _fields(method: Method, kind: Any) -> list[str]:
    """Return the fields of a reply, or the record that it is."""
    inner = [one.__name__ for one in (kind, *typing.get_args(kind)) if is_dataclass(one) and isinstance(one, type)]
    if method.is_list:
        return [f"`items` (`{inner[0]}`)" if inner else "`items`", "`next`"]
    if method.route.result:
        return [f"`{method.route.result}` (`{inner[0]}` by id)" if inner else f"`{method.route.result}`"]
    return [f"`{inner[0]}`"]


if __name__ == "__main__":
    main()
