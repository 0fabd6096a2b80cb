"""Merging of changes of an agent's state."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.brain_data.state_merge import conflicting, differing, merged, rebased, undone

ROWS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"n": 1}, {"n": 2}, {"n": 5}, {"n": 6}),
    ({}, {"n": 1}, {"n": 4}, {"n": 5}),
    ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3, 2]}),
    ({"a": "x"}, {"a": "xy"}, {"a": "xz"}, {"a": "xzy"}),
    ({"a": {"n": 1, "m": 1}}, {"a": {"n": 2, "m": 1}}, {"a": {"n": 1, "m": 7}}, {"a": {"n": 2, "m": 7}}),
    ({}, {"a": {"b": {"n": 1}}}, {"a": {"b": {"n": 2}}}, {"a": {"b": {"n": 3}}}),
    ({"a": True}, {"a": False}, {"a": None}, {"a": False}),
    ({"a": 1}, {}, {"a": 2}, {}),
    ({"a": 1}, {"a": "one"}, {"a": 2}, {"a": "one"}),
]


@pytest.mark.parametrize(("before", "after", "now", "result"), ROWS)
def test_changes_are_combined_with_those_of_others(
    before: dict[str, Any], after: dict[str, Any], now: dict[str, Any], result: dict[str, Any]
) -> None:
    assert rebased(json.dumps(before), json.dumps(after), json.dumps(now)) == result


def test_what_was_not_read_is_simply_set() -> None:
    assert rebased('{"n": 1}', '{"n": 7}', '{"n": 5}', blind={"n"}) == {"n": 7}


def test_true_is_not_one() -> None:
    assert differing('{"a": 1, "b": 1}', '{"a": true, "b": 1}') == {"a"}


def test_two_that_count_to_the_same_number_conflict() -> None:
    assert conflicting('{"n": 0, "m": 0}', '{"n": 1, "m": 0}', '{"n": 1, "m": 5}') == {"n"}
    assert merged('{"n": 0, "m": 0}', '{"n": 1, "m": 0}', '{"n": 0, "m": 5}') == {"n": 1, "m": 5}


numbers = st.dictionaries(st.sampled_from("abc"), st.integers(-5, 5), max_size=3)


@given(numbers, numbers, numbers)
def test_what_is_taken_back_leaves_what_others_have_added(
    before: dict[str, int], mine: dict[str, int], others: dict[str, int]
) -> None:
    """A turn and others each add to names; without the turn's part, only that of the others is left."""
    after = {name: before.get(name, 0) + mine.get(name, 0) for name in before.keys() | mine.keys()}
    now = {name: after.get(name, 0) + others.get(name, 0) for name in after.keys() | others.keys()}
    left = undone(json.dumps(before), json.dumps(after), json.dumps(now))
    for name in now:
        assert left.get(name, 0) == before.get(name, 0) + others.get(name, 0)
