"""Write the generated parts of the JavaScript client: its table of methods, and its types.

Both follow from the same declarations as the routes of REST and the methods of JSON-RPC. Run it after a change of a
method: `make generate`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel, to_pascal

from roost.api.rpc.methods import rpc_name
from roost.core.accounts.current_user import CurrentUser
from roost.core.envelopes.mail import Mail
from roost.core.meetings.view.shown import MeetingView
from roost.core.monitoring.facts import Fact
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message
from roost.core.talks.side_channels import Note
from roost.protocol.namespaces import Method, methods
from roost.protocol.values import wired
from roost.sync import HANDLERS

FOLDER = Path(__file__).parent.parent / "src" / "roost" / "client" / "javascript"
CODE, TYPES = FOLDER / "roost.mjs", FOLDER / "roost.d.mts"
NAMED = (CurrentUser, Mail, MeetingView, Fact, Attachment, Message, Note)
"""Types that the written part of the types names."""


def main() -> None:
    CODE.write_text(with_methods(CODE.read_text()))
    TYPES.write_text(types())


# --- the table of methods ------------------------------------------------------------------------------


def with_methods(code: str) -> str:
    """Return the client with the table of all methods."""
    before, _, rest = code.partition("// <methods>\n")
    _, _, after = rest.partition("// </methods>\n")
    rows = "".join(row(name, methods(name, kind)) for name, kind in HANDLERS.items())
    return f"{before}// <methods>\nconst METHODS = {{\n{rows}}};\n// </methods>\n{after}"


def row(namespace: str, found: tuple[Method, ...]) -> str:
    noun = rpc_name(found[0]).partition(".")[0]
    entries = "".join(f"      {to_camel(one.name)}: {_repeat(one)},\n" for one in found)
    return f'  {to_camel(namespace)}: [\n    "{noun}",\n    {{\n{entries}    }},\n  ],\n'


def _repeat(method: Method) -> str:
    if method.has("key") and method.fields["key"][1] is None:
        return "KEYED"
    if method.route.verb == "DELETE":
        return "GONE"
    return "AGAIN" if method.is_repeatable else "ONCE"


# --- types -----------------------------------------------------------------------------------------------


def types() -> str:
    """Return the declarations of the client for TypeScript."""
    schemas: dict[str, Any] = {}
    for kind in NAMED:
        _type(_collected(TypeAdapter(wired(kind)).json_schema(mode="serialization"), schemas))
    namespaces = [_namespace(name, methods(name, kind), schemas) for name, kind in HANDLERS.items()]
    declared = [_declared(name, schema) for name, schema in sorted(schemas.items())]
    members = "".join(f"  {to_camel(name)}: {to_pascal(name)}Methods;\n" for name in HANDLERS)
    return HEAD + "\n".join(declared) + "\n" + "\n".join(namespaces) + FOOT.replace("  // <namespaces>\n", members)


def _namespace(name: str, found: tuple[Method, ...], schemas: dict[str, Any]) -> str:
    lines = [line for one in found for line in signature(one, schemas)]
    return "\n".join([f"export interface {to_pascal(name)}Methods {{", *lines, *STREAMS.get(name, ()), "}", ""])


def signature(method: Method, schemas: dict[str, Any]) -> Iterator[str]:
    taken = _collected(method.params.model_json_schema(), schemas, keep=True)
    given = _type(_collected(TypeAdapter(method.shows).json_schema(mode="serialization"), schemas))
    about = " ".join((method.coroutine.__doc__ or "").split("\n\n")[0].split())
    optional = "" if taken.get("required") else "?"
    if about:
        yield f"  /** {about.replace('*/', '* /')} */"
    yield f"  {to_camel(method.name)}(params{optional}: {_type(taken)}, options?: CallOptions): Promise<{given}>;"


def _collected(schema: Mapping[str, Any], schemas: dict[str, Any], *, keep: bool = False) -> dict[str, Any]:
    """Return a schema whose definitions, and itself unless `keep`, are in `schemas` by their names."""
    own = {name: value for name, value in schema.items() if name != "$defs"}
    found = {**schema.get("$defs", {}), **({} if keep or own.get("type") != "object" else {own.get("title"): own})}
    for name, value in found.items():
        if name is not None and "properties" not in value and "enum" not in value:
            continue
        known = schemas.setdefault(_named(str(name)), value)
        assert known == value, f"two types are named {name}"
    is_named = not keep and own.get("type") == "object" and "properties" in own
    return {"$ref": f"#/$defs/{own['title']}"} if is_named else own


def _named(title: str) -> str:
    return title.removesuffix("Reply")


def _declared(name: str, schema: Mapping[str, Any]) -> str:
    about = " ".join(str(schema.get("description", "")).split()).replace("*/", "* /")
    head = f"/** {about} */\n" if about else ""
    if "enum" in schema:
        return f"{head}export type {name} = {_type(schema)};\n"
    fields = "".join(f"  {line}\n" for line in _fields(schema))
    return f"{head}export interface {name} {{\n{fields}}}\n"


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    needed = schema.get("required", ())
    for name, kind in schema.get("properties", {}).items():
        yield f"{name}{'' if name in needed else '?'}: {_type(kind)};"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of TypeScript for a JSON schema."""
    if "$ref" in schema:
        return _named(str(schema["$ref"]).rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    match schema.get("type"):
        case "array":
            return _array(schema)
        case "object":
            return _object(schema)
        case "string" | "boolean" | "null" as kind:
            return str(kind)
        case "integer" | "number":
            return "number"
    return "unknown"


def _array(schema: Mapping[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(_type(one) for one in schema['prefixItems'])}]"
    inner = _type(schema.get("items", {}))
    return f"({inner})[]" if re.search(r"[|\[ ]", inner) else f"{inner}[]"


def _object(schema: Mapping[str, Any]) -> str:
    if "properties" in schema:
        return f"{{ {' '.join(_fields(schema)).removesuffix(';')} }}"
    values = schema.get("additionalProperties")
    if values is False:
        return "{}"
    return f"Record<string, {_type(values) if isinstance(values, dict) and values else 'unknown'}>"


HEAD = """// Types of roost.mjs. Written by tools/javascript_client.py from the methods of the service: do not edit.
// Times are texts in ISO 8601, durations are seconds.

/** Options of every call: `signal` cancels it. */
export interface CallOptions {
  signal?: AbortSignal;
}

export interface ConnectOptions {
  /** API token. On a page of the server itself none is needed: the cookie of the browser signs in. */
  token?: string | null;
  /** Seconds for which the server may be away before calls and streams fail; default: 30. */
  patience?: number;
}

/** Return a client of a server; on a page, by default of the server of the page. */
export function connect(url?: string | URL, options?: ConnectOptions): Roost;

/** Error of the server, or of the connection to it. */
export class RoostError extends Error {
  constructor(code: string, message: string, options?: { status?: number; reference?: string; cause?: unknown });
  /** Name of the error: `NotFound`, `Invalid`, `Conflict`, `Forbidden`, `Busy`, `LimitReached`, `Unavailable` … */
  readonly name: string;
  /** The same as a code: `not_found`. */
  readonly code: string;
  /** Number of the error in JSON-RPC, or the status over HTTP. */
  readonly status: number | null;
  /** Reference to the log of the server, for an unexpected error. */
  readonly reference: string | null;
}

/** What a stream of a talk yields: `text` is new, `message.content` is the whole text so far. */
export interface Change {
  message: Message;
  text: string;
  cursor: string;
  /** True if the text begins again. */
  reset: boolean;
  notes: Note[];
}

export type Topic = "talk" | "meeting" | "agents" | "mail" | "monitor";

export interface Subscribing {
  topic: Topic;
  /** Cursor of the last event that was received. */
  after?: string | null;
  talkSessionId?: string;
  follow?: boolean;
  meetingId?: string;
  seenBy?: string | null;
  agentId?: string | null;
}

"""
STREAMS = {
    "talks": (
        "  /** Yield what exists, then each piece as it is written; end with the run, or never with `follow`. */",
        "  streamMessages(",
        "    params: { talkSessionId: string; after?: string | null; follow?: boolean },",
        "    options?: CallOptions,",
        "  ): AsyncGenerator<Change, void>;",
        "  /** Upload a file for a message. */",
        "  addAttachment(",
        "    params: { name: string; data: Blob | ArrayBuffer | Uint8Array | string },",
        "    options?: CallOptions,",
        "  ): Promise<Attachment>;",
        "  /** Return the bytes of a file. */",
        "  getAttachment(params: { attachmentId: string }, options?: CallOptions): Promise<Uint8Array>;",
    ),
    "mail": (
        "  /** Yield each mail to the user when it arrives, from now or from a cursor on. */",
        "  follow(params?: { after?: string | null }, options?: CallOptions): AsyncGenerator<Mail, void>;",
    ),
    "meetings": (
        "  /** Yield the view, and again after each change; end with the meeting. */",
        "  watch(",
        "    params: { meetingId: string; seenBy?: string | null; after?: string | null },",
        "    options?: CallOptions,",
        "  ): AsyncGenerator<MeetingView, void>;",
    ),
    "agents": (
        "  /** Yield what the monitor records about an agent, or about all agents. */",
        "  follow(",
        "    params?: { agentId?: string | null; after?: string | null },",
        "    options?: CallOptions,",
        "  ): AsyncGenerator<Fact, void>;",
    ),
    "monitor": (
        "  /** Yield each fact as it is recorded, from now or from a cursor on. */",
        "  follow(params?: { after?: string | null }, options?: CallOptions): AsyncGenerator<Fact, void>;",
    ),
}
"""Methods of the client that are no methods of JSON-RPC."""
FOOT = """
/** Client of one server. All calls and streams share one connection, which is opened on demand. */
export interface Roost extends Disposable {
  // <namespaces>
  /** Return the user of the token, the role of the account, and the scopes. */
  me(options?: CallOptions): Promise<CurrentUser>;
  /** Call a method of JSON-RPC by its name. */
  call(method: string, params?: Record<string, unknown> | unknown[], options?: CallOptions): Promise<unknown>;
  /** Yield the events of a topic with their cursors. */
  subscribe(params: Subscribing, options?: CallOptions): AsyncGenerator<{ cursor: string; event: unknown }, void>;
  /** Close the connection. Calls and streams in progress fail with `Unavailable`. */
  close(): void;
}
"""


if __name__ == "__main__":
    main()
