"""Server-sent events: reading them, and going on after a broken connection where it broke."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse

from roost.client.http import TRIES, Wire, encoded, error_in, pause
from roost.core.messages import Change, Status
from roost.errors import Unavailable
from roost.protocol.talks import ChangeEvent, PageReply

LONGEST_LINE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    data: str


def events(response: HTTPResponse) -> Iterator[Event]:
    """The events of a response, as they come; ends with the connection."""
    kind, data = "message", list[str]()
    while line := response.readline(LONGEST_LINE):
        field, _, value = line.decode().rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data.append(value)
        elif not field and not value and data:
            yield Event(kind, "\n".join(data))
            kind, data = "message", []


def changes(wire: Wire, user_id: str, path: str, after: str | None, follow: bool) -> Iterator[Change]:
    """The changes of a talk; after a broken connection those that follow the last one that came."""
    cursor, texts, failures = after, dict[int, str](), 0
    while True:
        try:
            for change in _connected(wire, user_id, path, cursor, follow, texts):
                if change is None:
                    return
                cursor, failures = change.cursor, 0
                yield change
        except (OSError, HTTPException) as error:
            failures += 1
            if failures == TRIES:
                raise Unavailable(f"the stream from {wire.url} broke off: check that it runs, and try again") from error
            pause(failures)


def _connected(
    wire: Wire, user_id: str, path: str, cursor: str | None, follow: bool, texts: dict[int, str]
) -> Iterator[Change | None]:
    """What comes on one connection; None when all has come."""
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": cursor} if cursor else {})
    connection, response = wire.stream(path + "/stream" + encoded({"follow": follow or None}), user_id, headers)
    try:
        for event in events(response):
            if event.kind == "end":
                yield None
            elif event.kind == "error":
                raise error_in(500, event.data.encode())
            elif event.kind == "change":
                yield _change(wire, user_id, path, ChangeEvent.model_validate_json(event.data), texts)
    finally:
        connection.close()
    raise ConnectionResetError("the stream ended without its end")


def _change(wire: Wire, user_id: str, path: str, event: ChangeEvent, texts: dict[int, str]) -> Change:
    """The change with the whole text so far, which is not sent again and again."""
    seq = event.message.seq
    before = texts.pop(seq, "")
    if not event.reset and len(before) != event.offset:
        # Begun in the middle of a text, with somebody's cursor: what was before it is asked for.
        answer = wire.ask("GET", path + "/messages", user_id, query={"before": seq + 1, "limit": 1})
        before = PageReply.model_validate(answer).messages[-1].content[: event.offset]
    change = event.change(before)
    if change.message.status is Status.STREAMING:
        texts[seq] = change.message.content
    return change
