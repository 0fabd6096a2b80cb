"""JSON forms of entry bodies, and their validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Bounds,
    Called,
    Declined,
    Ended,
    EntryId,
    EntryKind,
    Failed,
    FloorRule,
    Granted,
    Invited,
    Joined,
    Kicked,
    Left,
    Missed,
    Moved,
    Passed,
    Raised,
    Said,
    Started,
    Withheld,
)
from roost.core.meetings.log.stamps import LATEST
from roost.core.values import addresses, checks
from roost.errors import Invalid

MOST_TEXT = 256 * 1024
"""Maximum bytes of a text, of minutes, and of a move."""
MOST_REASON = 2_000
MOST_NUMBER = 1_000_000
"""Maximum entries of one participant in a meeting: it limits what others must store."""
MOST_PARTICIPANTS = 256
MOST_AUTHORS = 4_096
"""Maximum authors in a log. Entries of outsiders are void, but stored."""


def plain(body: Body) -> dict[str, Any]:
    """Return a body as a JSON value."""
    return {name: _plain(getattr(body, name)) for name in _READERS[type(body)]}


def read(kind: object, value: object) -> Body:
    """Read the output of `plain`. Raises Invalid for anything else."""
    made = _BODIES[checks.choice(kind, "the kind of an entry", EntryKind)]
    body: Body = made(**_fields(value, _READERS[made], f"what an entry that is {kind} says"))
    if isinstance(body, Called):
        _check_call(body)
    return body


def address(value: object, what: str) -> str:
    """Return a full address, which means the same to everyone: `agent:ann/d`, not `agent:d`."""
    parsed = addresses.parse(value, "")
    if not parsed.user_id or parsed.text != value:
        raise Invalid(f"{what} must be an address in full, such as agent:ann/d or user:ann, not {checks.shown(value)}")
    return parsed.text


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Bounds):
        return {field.name: getattr(value, field.name) for field in fields(Bounds)}
    return value


def _fields(value: object, readers: Mapping[str, Callable[[Any], Any]], what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != readers.keys():
        raise Invalid(f"{what} must be an object with {', '.join(readers) or 'nothing'}, not {checks.shown(value)}")
    return {name: reader(value[name]) for name, reader in readers.items()}


def _check_call(call: Called) -> None:
    invited = call.required + call.optional
    if len(set(invited)) != len(invited):
        raise Invalid("a participant is invited twice: name each once, as required or as optional")
    if len(invited) >= call.bounds.participants:
        raise Invalid(
            f"{len(invited)} participants are invited, and with the creator {call.bounds.participants} are allowed:"
            " invite fewer, or raise the limit `meeting_participants`"
        )


def _some(value: object, *, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_PARTICIPANTS:
        raise Invalid(f"{what} must be a list of at most {MOST_PARTICIPANTS} addresses, not {checks.shown(value)}")
    return tuple(address(item, f"each of {what}") for item in value)


def _reason(value: object) -> str:
    return "" if value == "" else checks.text(value, "a reason", most=MOST_REASON)


def _minutes(value: object) -> str:
    return "" if value == "" else checks.text(value, "minutes", most=MOST_TEXT)


def _answers(value: object) -> EntryId:
    if not isinstance(value, list) or len(value) != 2:
        raise Invalid(f"the entry that a move answers must be an author and a number, not {checks.shown(value)}")
    number = checks.count(value[1], "the number of an entry", least=1, most=MOST_NUMBER)
    return EntryId(address(value[0], "the author of an entry"), number)


def _bounds(value: object) -> Bounds:
    if isinstance(value, dict) and "misses" not in value:  # called before this limit existed
        value = {**value, "misses": Bounds().misses}
    return Bounds(**_fields(value, _BOUNDS, "the bounds of a meeting"))


_BOUNDS: Mapping[str, Callable[[Any], Any]] = {
    "participants": partial(checks.count, what="participants", least=1, most=MOST_PARTICIPANTS),
    "words": partial(checks.count, what="words", least=1, most=MOST_NUMBER),
    "moves": partial(checks.count, what="moves", least=1, most=MOST_NUMBER),
    "turn": partial(checks.count, what="turn", least=0, most=checks.LONGEST * 1000),
    "misses": partial(checks.count, what="misses", least=1, most=MOST_NUMBER),
}
_WHO: Mapping[str, Callable[[Any], Any]] = {"who": partial(address, what="who is meant")}
_WHY: Mapping[str, Callable[[Any], Any]] = {"reason": _reason}
_READERS: Mapping[type[Body], Mapping[str, Callable[[Any], Any]]] = {
    Called: {
        "topic": partial(checks.name, what="the topic"),
        "deadline": partial(checks.count, what="the deadline", least=0, most=LATEST),
        "required": partial(_some, what="those required"),
        "optional": partial(_some, what="those optional"),
        "floor": partial(checks.choice, what="the floor rule", kind=FloorRule),
        "moderator": lambda value: None if value is None else address(value, "the moderator"),
        "game": lambda value: None if value is None else checks.name(value, "the game"),
        "setting": partial(checks.data, what="the setting of the game", most=MOST_TEXT),
        "open": partial(checks.flag, what="open"),
        "bounds": _bounds,
    },
    Invited: {**_WHO, "required": partial(checks.flag, what="required")},
    Accepted: {},
    Declined: _WHY,
    Joined: {},
    Left: _WHY,
    Kicked: {**_WHO, **_WHY},
    Started: {},
    Failed: {"reason": partial(checks.text, what="the reason", most=MOST_REASON)},
    Raised: {},
    Granted: _WHO,
    Passed: _WHO,
    Said: {
        "text": partial(checks.text, what="what is said", most=MOST_TEXT),
        "to": partial(_some, what="those mentioned"),
        "hand": partial(checks.flag, what="hand"),
    },
    Moved: {"answers": _answers, "move": partial(checks.data, what="a move", most=MOST_TEXT)},
    Missed: {"answers": _answers},
    Withheld: {
        "what": partial(checks.choice, what="the kind of an act", kind=EntryKind),
        "text": _minutes,
        "reason": partial(checks.text, what="the reason", most=MOST_REASON),
        "run": lambda value: "" if value == "" else checks.name(value, "the run"),
    },
    Ended: {"minutes": _minutes},
}
_BODIES: Mapping[EntryKind, type[Body]] = {EntryKind(made.__name__.lower()): made for made in _READERS}
