"""Merge of `turn.state`, as JSON: the names that concurrent turns change, and how their changes are combined."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

ABSENT: Final = object()
"""Value of a missing name."""


def parsed(text: str | None) -> dict[str, Any]:
    return dict(json.loads(text)) if text else {}


def same(value: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: True is not 1."""
    if value is ABSENT or other is ABSENT:
        return value is other
    return bool(value == other) and json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


def differing(before: str | None, after: str | None) -> set[str]:
    """Return the names whose values differ."""
    if (before or "{}") == (after or "{}"):
        return set()
    was, now = parsed(before), parsed(after)
    return {name for name in was.keys() | now.keys() if not same(was.get(name, ABSENT), now.get(name, ABSENT))}


def conflicting(before: str | None, after: str, now: str | None) -> set[str]:
    """Return the names that a turn changed (`before` to `after`) and others changed too (`before` to `now`)."""
    if (before or "{}") == (now or "{}"):
        return set()
    return differing(before, after) & differing(before, now)


def merged(before: str | None, after: str, now: str | None) -> dict[str, Any]:
    """Return `now` with the names that differ between `before` and `after` set as in `after`."""
    new, result = parsed(after), parsed(now)
    for name in differing(before, after):
        put(result, name, new.get(name, ABSENT))
    return result


def rebased(before: str | None, after: str, now: str | None, blind: Collection[str] = ()) -> dict[str, Any]:
    """Apply to `now` the changes from `before` to `after`. Names in `blind` were set without being read.

    Values that cannot be combined are taken from `after`.
    """
    was, new, result = parsed(before), parsed(after), parsed(now)
    for name in differing(before, after):
        value = new.get(name, ABSENT)
        if name not in blind:
            value = combined(was.get(name, ABSENT), value, result.get(name, ABSENT), value)
        put(result, name, value)
    return result


def undone(before: str | None, after: str, now: str | None) -> Any:
    """Revert in `now` the changes from `before` to `after`, except where later changes build on them."""
    return _taken_back(parsed(before), parsed(after), parsed(now))


def _taken_back(old: Any, own: Any, now: Any) -> Any:
    if same(old, own):
        return now
    if same(own, now):
        return old
    if _kind(own) == _kind(now) == "mapping" and (old is ABSENT or _kind(old) == "mapping"):
        was, result = {} if old is ABSENT else old, dict(now)
        for name in was.keys() | own.keys():
            put(result, name, _taken_back(*(value.get(name, ABSENT) for value in (was, own, now))))
        return result
    return combined(own, _EMPTY.get(_kind(own), old) if old is ABSENT else old, now, now)


def combined(base: Any, own: Any, now: Any, otherwise: Any) -> Any:
    """Merge two changes of one value: numbers by sum, texts and lists that grew, mappings name by name."""
    if same(base, own):
        return now
    if same(base, now):
        return own
    kinds = {_kind(value) for value in (base, own, now) if value is not ABSENT}
    if kinds == {"number"} and own is not ABSENT and now is not ABSENT:
        return now + own - (0 if base is ABSENT else base)
    if kinds == {"mapping"} and own is not ABSENT and now is not ABSENT:
        return _by_name({} if base is ABSENT else base, own, now)
    if kinds == {"list"} or (kinds == {"text"} and base and base is not ABSENT):
        return _grown([] if base is ABSENT else base, own, now, otherwise)
    return otherwise


def _by_name(base: dict[str, Any], own: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    result = dict(now)
    for name in base.keys() | own.keys():
        value = own.get(name, ABSENT)
        put(result, name, combined(base.get(name, ABSENT), value, now.get(name, ABSENT), value))
    return result


def _grown(base: Any, own: Any, now: Any, otherwise: Any) -> Any:
    if own is ABSENT or now is ABSENT:
        return otherwise
    size = len(base)
    if own[:size] == base:
        return now + own[size:]
    return own + now[size:] if now[:size] == base else otherwise


_KINDS = {int: "number", float: "number", str: "text", list: "list", dict: "mapping"}
_EMPTY: dict[str, Any] = {"number": 0, "list": []}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "other")


def put(values: dict[str, Any], name: str, value: Any) -> None:
    if value is ABSENT:
        values.pop(name, None)
    else:
        values[name] = value
