"""Page of the API under /docs/api: every request with its parameters, an example and what it returns. No script."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, Response

from roost.api.openapi import TAGS
from roost.api.routes.docs import PAGE, STYLE

_STYLE = """
.op { border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0; padding: .2rem .8rem; }
.op summary { cursor: pointer; overflow-wrap: anywhere; }
.op small { opacity: 0.75; }
.verb { display: inline-block; min-width: 4.5rem; font-weight: 600; }
"""
_CODE = re.compile(r"`([^`]+)`")
_HERE = "\0"
"""Stands for the address of the server."""
Schema = Mapping[str, Any]


def add(app: FastAPI) -> None:
    """Add the page; it is no part of the API."""
    made: list[str] = []

    @app.get("/docs/api", include_in_schema=False)
    def api(request: Request) -> Response:
        if not made:
            made.append(page(app.openapi()))
        return HTMLResponse(made[0].replace(_HERE, escape(str(request.base_url).rstrip("/"))))


def page(schema: Schema) -> str:
    """Return the whole description as HTML."""
    found: dict[str, list[str]] = {name: [] for name in TAGS}
    for path, operations in sorted(schema["paths"].items()):
        for verb, operation in sorted(operations.items()):
            found[operation["tags"][0]].append(_operation(schema, verb.upper(), path, operation))
    links = "".join(f'<a href="#{name}">{_title(name)}</a>' for name in found)
    body = "".join(
        f'<section id="{name}"><h2>{_title(name)}</h2><p>{escape(TAGS[name])}</p>{"".join(parts)}</section>'
        for name, parts in found.items()
    )
    intro = (
        "<h1>Requests of the HTTP API</h1><p>Every request, with its parameters, what it returns, and an example of its"
        " body. Programs sign in with an API token: run <code>roost tokens create NAME</code>. "
        '<a href="/docs/reference/http">Errors, lists and streams</a> are explained in the docs; '
        '<a href="/api/v1/openapi.json">openapi.json</a> is the same for programs.</p>'
    )
    return PAGE.format(
        title="Requests of the HTTP API",
        style=STYLE + _STYLE,
        pages=f'<a href="/docs">Docs</a>{links}',
        body=intro + body,
    )


def _title(name: str) -> str:
    return "OpenAI" if name == "openai" else name.replace("_", " ").capitalize()


def _operation(schema: Schema, verb: str, path: str, operation: Schema) -> str:
    text = escape(operation.get("description") or operation.get("summary") or "")
    about = _CODE.sub(r"<code>\1</code>", text.replace("\n\n", "<br>"))
    parts = [f"<p>{about}</p>", _parameters(schema, operation), _example(verb, path, operation)]
    parts.append(_returns(schema, operation))
    first = about.partition("<br>")[0].partition(". ")[0].rstrip(".")
    summary = f'<span class="verb">{verb}</span><code>{escape(path)}</code> <small>{first}</small>'
    return f'<details class="op"><summary>{summary}</summary>{"".join(parts)}</details>'


def _parameters(schema: Schema, operation: Schema) -> str:
    rows = [
        _row(one["name"], one["in"], one.get("schema", {}), required=one.get("required", False))
        for one in operation.get("parameters", ())
    ]
    rows += [_row(name, "body", kind, required=needed) for name, kind, needed in _fields(schema, operation)]
    if not rows:
        return ""
    head = "<tr><th>name</th><th>in</th><th>type</th><th>default</th></tr>"
    return f'<div class="table"><table>{head}{"".join(rows)}</table></div>'


def _fields(schema: Schema, operation: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Yield name, type and whether it is required, of each field of a JSON body."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    reference = body.get("$ref") or next((one["$ref"] for one in body.get("anyOf", ()) if "$ref" in one), "")
    model = schema["components"]["schemas"].get(reference.rpartition("/")[2], {})
    for name, kind in model.get("properties", {}).items():
        yield name, kind, name in model.get("required", ())


def _row(name: str, place: str, kind: Schema, *, required: bool) -> str:
    default = "required" if required else json.dumps(kind["default"]) if kind.get("default") is not None else ""
    cells = (f"<code>{escape(name)}</code>", place, escape(_type(kind)), escape(default))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _type(kind: Schema) -> str:
    """Return a type in a word or two."""
    if several := kind.get("anyOf") or kind.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(one) for one in several if one.get("type") != "null"))
    if "$ref" in kind:
        return str(kind["$ref"].rpartition("/")[2])
    if kind.get("type") == "array":
        return f"list of {_type(kind.get('items', {}))}"
    return str(kind.get("format") or kind.get("type") or "any value")


def _example(verb: str, path: str, operation: Schema) -> str:
    """Return a command that sends the request; nothing if its body is not JSON."""
    words = ["curl"] if verb == "GET" else ["curl", "-X", verb]
    lines = [f'{" ".join(words)} -H "Authorization: Bearer $ROOST_TOKEN"']
    if (body := operation.get("requestBody")) is not None:
        content = body["content"].get("application/json", {})
        if "example" not in content:
            return ""
        lines += ['-H "Content-Type: application/json"', f"-d {shlex.quote(json.dumps(content['example']))}"]
    command = " \\\n  ".join([*map(escape, lines), f"{_HERE}{escape(path)}"])
    return f"<pre><code>{command}</code></pre>"


def _returns(schema: Schema, operation: Schema) -> str:
    """Return what the reply is, with the names of its fields."""
    for status, reply in operation["responses"].items():
        if status.startswith("2"):
            kinds = [_type(one.get("schema", {})) for one in reply.get("content", {}).values()]
            model = schema["components"]["schemas"].get(kinds[0], {}) if kinds else {}
            fields = ", ".join(f"<code>{escape(name)}</code>" for name in model.get("properties", ()))
            return (
                f"<p>Returns {status}{', ' + escape(kinds[0]) if kinds else ''}{': ' + fields if fields else ''}.</p>"
            )
    return ""
