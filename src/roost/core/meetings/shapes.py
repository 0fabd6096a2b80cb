"""The shapes of what entries say: how each kind is written as JSON, and read from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from roost.core import addresses, checks
from roost.core.meetings.bodies import (
    Accepted,
    Body,
    Bounds,
    Called,
    Declined,
    Ended,
    EntryId,
    Failed,
    FloorRule,
    Granted,
    Invited,
    Joined,
    Kicked,
    Kind,
    Left,
    Missed,
    Moved,
    Passed,
    Raised,
    Said,
    Started,
)
from roost.core.meetings.stamps import LATEST
from roost.errors import Invalid

MOST_TEXT = 256 * 1024
"""Bytes of what is said at once, of minutes, and of a move."""
MOST_REASON = 2_000
MOST_NUMBER = 1_000_000
"""Entries that one participant may write in one meeting: what anyone can make others keep is bounded."""
MOST_PARTICIPANTS = 256
MOST_AUTHORS = 4_096
"""Those who are not there may write as well; it is void, but it is kept."""


def plain(body: Body) -> dict[str, Any]:
    """As JSON has it."""
    return {name: _plain(getattr(body, name)) for name in _READERS[type(body)]}


def read(kind: object, value: object) -> Body:
    """What `plain` gave; anything else is refused as Invalid."""
    made = _BODIES[checks.choice(kind, "the kind of an entry", Kind)]
    body: Body = made(**_fields(value, _READERS[made], f"what an entry that is {kind} says"))
    if isinstance(body, Called):
        _check_call(body)
    return body


def address(value: object, what: str) -> str:
    """An address in full, so that it means the same to everyone: `agent:ann/d`, not `agent:d`."""
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
        raise Invalid("somebody is invited twice: name each once, as required or as optional")
    if len(invited) >= call.bounds.participants:
        raise Invalid(f"{len(invited)} are invited, and with the creator {call.bounds.participants} may be there")


def _some(value: object, *, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_PARTICIPANTS:
        raise Invalid(f"{what} must be a list of at most {MOST_PARTICIPANTS} addresses, not {checks.shown(value)}")
    return tuple(address(one, f"each of {what}") for one in value)


def _reason(value: object) -> str:
    return "" if value == "" else checks.text(value, "a reason", most=MOST_REASON)


def _minutes(value: object) -> str:
    return "" if value == "" else checks.text(value, "minutes", most=MOST_TEXT)


def _answers(value: object) -> EntryId:
    if not isinstance(value, list) or len(value) != 2:
        raise Invalid(f"what a move answers must be an author and a number, not {checks.shown(value)}")
    number = checks.count(value[1], "the number of an entry", least=1, most=MOST_NUMBER)
    return EntryId(address(value[0], "the author of an entry"), number)


def _bounds(value: object) -> Bounds:
    if isinstance(value, dict) and "misses" not in value:  # it was called when there was no such bound
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
    Ended: {"minutes": _minutes},
}
_BODIES: Mapping[Kind, type[Body]] = {Kind(made.__name__.lower()): made for made in _READERS}
