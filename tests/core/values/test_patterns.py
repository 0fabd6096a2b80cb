"""A8: names of events, and the patterns and fields by which someone chooses among them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roost.core.values.patterns import check_name, check_pattern, fields_match, matches
from roost.errors import Invalid

SEGMENT = st.text("ab_é(", min_size=1, max_size=4)
NAMES = st.lists(SEGMENT, min_size=1, max_size=4).map(".".join)
PATTERNS = st.lists(
    st.one_of(SEGMENT, st.just("*"), st.text("ab_é(*", min_size=1, max_size=5).filter(lambda s: "**" not in s)),
    min_size=1,
    max_size=4,
).map(".".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


def by_regex(pattern: str, name: str) -> bool:
    """The same said another way."""
    *inner, last = [re.escape(segment).replace(r"\*", "[^.]*") for segment in pattern.split(".")]
    if last == "[^.]*":
        last = ".+"
    return re.fullmatch(r"\.".join([*inner, last]), name) is not None


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*", "a"),
        ("*", "a.b.c"),
        ("alerts.*", "alerts.disk"),
        ("alerts.*", "alerts.disk.full"),
        ("data_*", "data_ready"),
        ("data_*", "data_"),
        ("*_ready", "data_ready"),
        ("a*b*c", "a-b-b-c"),
        ("*.failed", "agent.failed"),
        ("a.*.c", "a.b.c"),
        ("a.*_x.*", "a.b_x.c.d"),
        ("*.*", "a.b"),
    ],
)
def test_a_pattern_matches_what_it_stands_for(pattern: str, name: str) -> None:
    assert matches(check_pattern(pattern), check_name(name))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("alerts.*", "alerts"),
        ("alerts.*", "alertsx.disk"),
        ("data_*", "data_a.b"),
        ("data_*", "Data_ready"),
        ("a.b", "a.b.c"),
        ("a.b", "axb"),
        ("*.failed", "agent.x.failed"),
        ("ab*ba", "aba"),
        ("a*b*c", "a-c-b"),
        ("a*b*b", "a-b"),
        ("ab*a*b", "ab-b"),
        ("*.*", "a"),
        ("a.*.c", "a.c"),
    ],
)
def test_a_pattern_matches_nothing_else(pattern: str, name: str) -> None:
    assert not matches(check_pattern(pattern), check_name(name))


@given(PATTERNS, NAMES)
@example("*a*b", "ab")
def test_patterns_match_as_the_same_said_by_a_regular_expression(pattern: str, name: str) -> None:
    assert matches(pattern, name) is by_regex(pattern, name)


@given(NAMES)
def test_a_name_is_a_pattern_of_itself_alone(name: str) -> None:
    assert check_pattern(name) == check_name(name) == name
    assert matches(name, name)
    assert not matches(name, name + "x")
    assert not matches(name, name + ".x")


@given(PATTERNS, NAMES)
def test_every_pattern_that_matches_a_branch_matches_what_grows_on_it_only_by_a_last_star(
    pattern: str, name: str
) -> None:
    grown = matches(pattern, f"{name}.leaf")
    if matches(pattern, name):
        assert grown is (pattern == "*" or pattern.endswith(".*"))


@pytest.mark.timeout(5)
def test_a_malicious_pattern_takes_no_longer_than_a_friendly_one() -> None:
    assert not matches("a*" * 100_000 + "b", "a" * 200_000)


@pytest.mark.parametrize(
    "name", ["", "a b", "a\tb", "a\0b", "a..b", ".a", "a.", ".", "x" * 201, "a*", "a\u00a0b", 7, None, b"a", "\ud800"]
)
def test_a_bad_name_is_refused(name: object) -> None:
    with pytest.raises(Invalid, match="event name"):
        check_name(name)


@pytest.mark.parametrize("pattern", ["", "a b", "a..*", ".*", "*.", "**", "a.**", "*" + "x" * 200, 7, None])
def test_a_bad_pattern_is_refused(pattern: object) -> None:
    with pytest.raises(Invalid, match="event pattern"):
        check_pattern(pattern)


@given(st.text())
def test_whatever_is_given_is_a_name_or_refused(text: str) -> None:
    try:
        name = check_name(text)
    except Invalid:
        return
    assert matches("*", name)
    assert matches(name, name)


@given(
    st.dictionaries(st.text("ab", max_size=2), JSON, max_size=3),
    st.dictionaries(st.text("cd", min_size=1), JSON, max_size=3),
)
def test_fields_match_whatever_else_is_in_the_data(wanted: dict[str, Any], more: dict[str, Any]) -> None:
    assert fields_match(wanted, {**wanted, **more})
    for key in wanted:
        assert not fields_match(wanted, {**more, **{k: v for k, v in wanted.items() if k != key}})
        assert not fields_match(wanted, {**wanted, key: [wanted[key]]})


@pytest.mark.parametrize(
    ("wanted", "data", "fits"),
    [
        ({}, None, True),
        ({}, {"n": 1}, True),
        ({"n": 1}, {"n": 1, "m": 2}, True),
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": [0, 1]}, {"n": [False, 1]}, False),
        ({"n": {"a": [1]}}, {"n": {"a": [1]}}, True),
        ({"n": {"a": 1}}, {"n": {"a": 1, "b": 2}}, False),
        ({"n": None}, {}, False),
        ({"n": None}, {"n": None}, True),
        ({"n": 1}, None, False),
        ({"n": 1}, ["n"], False),
        ({"n": 1}, "n", False),
    ],
)
def test_fields_are_equal_as_json_understands_it(wanted: dict[str, Any], data: object, fits: bool) -> None:
    assert fields_match(wanted, data) is fits
