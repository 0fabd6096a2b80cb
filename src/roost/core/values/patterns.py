"""Event names, and the patterns and fields of subscriptions.

A name consists of segments separated by dots: `alerts.disk.full`. In a pattern, `*` matches any characters within one
segment (`data_*`); as the last segment it matches all that follow (`alerts.*`), and alone it matches every name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roost.core.values import checks
from roost.errors import Invalid

ANY = "*"


def check_name(name: object) -> str:
    checked = _segmented(name, "the event name")
    if ANY in checked:
        raise Invalid(f"the event name {checked!r:.80} must not contain '*': only patterns may")
    return checked


def check_pattern(pattern: object) -> str:
    checked = _segmented(pattern, "the event pattern")
    if ANY * 2 in checked:
        raise Invalid(f"the event pattern {checked!r:.80} must not contain '**': write one '*'")
    return checked


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches an event name. Case-sensitive; takes linear time."""
    wanted, given = pattern.split("."), name.split(".")
    if wanted[-1] == ANY:
        del wanted[-1]
        fits = len(given) > len(wanted)
    else:
        fits = len(given) == len(wanted)
    return fits and all(map(_segment_matches, wanted, given))


def text_matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a text; `*` matches any characters."""
    return _segment_matches(pattern, text)


def head(pattern: str) -> str:
    """Return the index key of a pattern. Every pattern that matches a name has one of the name's `heads`."""
    if ANY not in pattern:
        return pattern
    first, dot, _ = pattern.partition(".")
    return first + dot if dot and ANY not in first else ANY


def heads(name: str) -> tuple[str, str, str]:
    return name, name.partition(".")[0] + ".", ANY


def fields_match(wanted: Mapping[str, Any], data: Any) -> bool:
    """Return whether the data has each wanted field with an equal JSON value: `true` is not 1."""
    if not wanted:
        return True
    return isinstance(data, Mapping) and all(key in data and _equal(value, data[key]) for key, value in wanted.items())


def _segmented(value: object, what: str) -> str:
    checked = checks.name(value, what)
    if " " in checked:
        raise Invalid(f"{what} must not contain spaces: {checked!r:.80}")
    if "" in checked.split("."):
        raise Invalid(f"{what} must not have empty segments around its dots: {checked!r:.80}")
    return checked


def _segment_matches(wanted: str, given: str) -> bool:
    first, *others = wanted.split(ANY)
    if not others:
        return wanted == given
    *inner, last = others
    if len(given) < len(first) + len(last) or not (given.startswith(first) and given.endswith(last)):
        return False
    # Matching each piece as early as possible leaves the most room for the rest, so no backtracking is needed.
    place, end = len(first), len(given) - len(last)
    for piece in inner:
        place = given.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_equal(value, second[key]) for key, value in first.items())
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_equal, first, second))
    return isinstance(first, bool) is isinstance(second, bool) and bool(first == second)
