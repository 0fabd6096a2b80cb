"""Forms: their fields in HTML, and what browsers send."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from roost.api.error_responses import HttpError

MOST_BYTES = 64 * 1024
MOST_FIELDS = 20
KIND = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raise HttpError if the body is not one."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != KIND:
        raise HttpError(415, "invalid", f"send the form as {KIND}")
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                raise HttpError(413, "too_large", f"the form is too large: the limit is {MOST_BYTES:,} bytes")
    except ClientDisconnect:
        raise HttpError(400, "invalid", "the client has disconnected") from None
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise HttpError(422, "invalid", "the form is not valid") from None
    return dict(pairs)


def text_field(
    name: str, label: str, *, complete: str, value: str = "", error: str | None = None, focus: bool = False
) -> str:
    """Return a field for a short text; `complete` tells password managers what it is."""
    more = ' autocapitalize="none" autocorrect="off" spellcheck="false"'
    return _field(name, label, "text", complete, f'{more} value="{escape(value)}"', error, focus=focus)


def password_field(
    name: str, label: str, *, complete: str, error: str | None = None, focus: bool = False, least: int | None = None
) -> str:
    more = f' minlength="{least}"' if least is not None else ""
    return _field(name, label, "password", complete, more, error, focus=focus)


def _field(name: str, label: str, kind: str, complete: str, more: str, error: str | None, *, focus: bool) -> str:
    told = f'<p class="error" id="{name}-error" role="alert">{escape(error)}</p>' if error else ""
    state = f' aria-invalid="true" aria-describedby="{name}-error"' if error else ""
    focused = " autofocus" if focus else ""
    what = f'id="{name}" name="{name}" type="{kind}" autocomplete="{complete}" required'
    return f'<label for="{name}">{escape(label)}</label><input {what}{more}{state}{focused}>{told}'


def known_name(name: str) -> str:
    """Return a field that is not shown, in which password managers find the name of the account."""
    return f'<input type="text" name="name" autocomplete="username" value="{escape(name)}" hidden readonly>'


def hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def choice(name: str, label: str, options: Mapping[str, str]) -> str:
    listed = "".join(f'<option value="{escape(value)}">{escape(shown)}</option>' for value, shown in options.items())
    return f'<label for="{name}">{escape(label)}</label><select id="{name}" name="{name}">{listed}</select>'


def form(action: str, fields: str, button: str, *, second: bool = False) -> str:
    look = ' class="second"' if second else ""
    return f'<form method="post" action="{action}">{fields}<button{look}>{escape(button)}</button></form>'


def as_sentence(error: Exception) -> str:
    """Return the message of an error as a sentence."""
    said = str(error)
    return f"{said[:1].upper()}{said[1:]}."
