"""Names of events, and the patterns and fields by which someone chooses among them.

A name is made of segments between dots: `alerts.disk.full`. In a pattern `*` stands for any run of characters
within one segment (`data_*`), as the last segment for all that follow (`alerts.*`), and alone for every name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roost.core import checks
from roost.errors import Invalid

ANY = "*"


def check_name(name: object) -> str:
    checked = _segmented(name, "the name of an event")
    if ANY in checked:
        raise Invalid(f"the name of an event must not contain '*', and {checked!r:.80} does: only patterns may")
    return checked


def check_pattern(pattern: object) -> str:
    checked = _segmented(pattern, "a pattern of event names")
    if ANY * 2 in checked:
        raise Invalid(f"a pattern of event names must not contain '**', and {checked!r:.80} does: write one '*'")
    return checked


def matches(pattern: str, name: str) -> bool:
    """Whether the name is one that the pattern stands for; case counts. Takes time linear in both."""
    wanted, given = pattern.split("."), name.split(".")
    if wanted[-1] == ANY:
        del wanted[-1]
        fits = len(given) > len(wanted)
    else:
        fits = len(given) == len(wanted)
    return fits and all(map(_segment_matches, wanted, given))


def text_matches(pattern: str, text: str) -> bool:
    """Whether the text is one that the pattern stands for, in which `*` stands for any run of characters."""
    return _segment_matches(pattern, text)


def head(pattern: str) -> str:
    """Under what a pattern is filed: those that stand for a name are all under one of its `heads`."""
    if ANY not in pattern:
        return pattern
    first, dot, _ = pattern.partition(".")
    return first + dot if dot and ANY not in first else ANY


def heads(name: str) -> tuple[str, str, str]:
    return name, name.partition(".")[0] + ".", ANY


def fields_match(wanted: Mapping[str, Any], data: Any) -> bool:
    """Whether the data has each wanted field with an equal value, as JSON understands equal: `true` is not 1."""
    if not wanted:
        return True
    return isinstance(data, Mapping) and all(key in data and _equal(value, data[key]) for key, value in wanted.items())


def _segmented(value: object, what: str) -> str:
    checked = checks.name(value, what)
    if " " in checked:
        raise Invalid(f"{what} must not contain spaces, and {checked!r:.80} does")
    if "" in checked.split("."):
        raise Invalid(f"{what} must have something before, between and after its dots, and {checked!r:.80} has not")
    return checked


def _segment_matches(wanted: str, given: str) -> bool:
    first, *others = wanted.split(ANY)
    if not others:
        return wanted == given
    *inner, last = others
    if len(given) < len(first) + len(last) or not (given.startswith(first) and given.endswith(last)):
        return False
    # Taking each piece as early as possible leaves the most room for those after it, so nothing is tried twice.
    place, end = len(first), len(given) - len(last)
    for piece in inner:
        place = given.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)
