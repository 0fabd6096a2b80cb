"""A6: what a sleeping agent waits for; and how priorities order what waits for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roost.core.agents import wake
from roost.core.agents.wake import AllOf, AnyOf, At, Condition, OnEvent, OnLoad, OnMail
from roost.core.values.patterns import matches
from roost.core.values.priority import Priority, rank
from roost.errors import Invalid

NAMES = ["alerts", "alerts.disk", "data_ready", "data_x"]
LEAVES: st.SearchStrategy[Condition] = st.one_of(
    st.builds(wake.at, st.integers(0, 9) | st.floats(0, 9)),
    st.builds(wake.event, st.sampled_from(["*", "alerts.*", "data_*", "data_ready", "nothing"])),
    st.builds(wake.mail, st.sampled_from(Priority)),
    st.builds(lambda cpu, awake: wake.load_below(cpu=cpu, awake=awake), st.floats(0.1, 1), st.integers(1, 9)),
    st.builds(lambda awake: wake.load_below(awake=awake), st.integers(1, 9)),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda combine, parts: combine(*parts),
        st.sampled_from([wake.any_of, wake.all_of]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=8,
)
Happening = tuple[Callable[[Condition, Any], Condition], Any]
HAPPENINGS: st.SearchStrategy[Happening] = st.one_of(
    st.tuples(st.just(wake.heard), st.sampled_from(NAMES)),
    st.tuples(st.just(wake.got_mail), st.sampled_from(Priority)),
    st.tuples(st.just(wake.passed), st.floats(0, 9)),
)
LOADS = st.fixed_dictionaries({"cpu": st.none() | st.floats(0, 1), "awake": st.none() | st.integers(0, 9)})


def after(condition: Condition, happenings: list[Happening]) -> Condition:
    for happen, what in happenings:
        condition = happen(condition, what)
    return condition


def leaves(condition: Condition) -> list[Condition]:
    if isinstance(condition, AnyOf | AllOf):
        return [leaf for inner in condition.conditions for leaf in leaves(inner)]
    return [condition]


def truth(condition: Condition, happenings: list[Happening], load: dict[str, Any]) -> bool:
    """The same by looking back at all that has happened."""
    if isinstance(condition, AnyOf):
        return any(truth(inner, happenings, load) for inner in condition.conditions)
    if isinstance(condition, AllOf):
        return all(truth(inner, happenings, load) for inner in condition.conditions)
    if isinstance(condition, OnLoad):
        marks = {"cpu": condition.cpu, "awake": condition.awake}
        return all(load[k] is not None and load[k] < mark for k, mark in marks.items() if mark is not None)
    if isinstance(condition, At):
        return any(what >= condition.time for happen, what in happenings if happen is wake.passed)
    if isinstance(condition, OnMail):
        order = ["low", "normal", "high", "urgent"]
        mail = [order.index(what) for happen, what in happenings if happen is wake.got_mail]
        return max(mail, default=-1) >= order.index(condition.priority)
    return any(matches(condition.pattern, what) for happen, what in happenings if happen is wake.heard)


@given(CONDITIONS, st.lists(HAPPENINGS, max_size=6), LOADS)
def test_a_condition_is_met_as_a_look_back_says(
    condition: Condition, happenings: list[Happening], load: dict[str, Any]
) -> None:
    latched = after(condition, happenings)
    assert wake.is_met(latched, **load) is truth(condition, happenings, load)
    assert bool(wake.reason(latched, **load)) is wake.is_met(latched, **load)


@given(CONDITIONS, st.lists(HAPPENINGS, max_size=6), HAPPENINGS)
def test_what_has_been_stays_whatever_comes_later(
    condition: Condition, happenings: list[Happening], more: Happening
) -> None:
    before = after(condition, happenings)
    later = after(before, [more])
    assert not wake.is_met(before) or wake.is_met(later)
    assert after(later, [more, *happenings]) is later


@given(CONDITIONS, st.lists(HAPPENINGS, max_size=6))
def test_only_what_is_still_waited_for_is_asked_for(condition: Condition, happenings: list[Happening]) -> None:
    latched = after(condition, happenings)
    ends = leaves(latched)
    times = [leaf.time for leaf in ends if isinstance(leaf, At) and not leaf.met]
    assert wake.next_time(latched) == (min(times) if times else None)
    assert set(wake.patterns(latched)) == {leaf.pattern for leaf in ends if isinstance(leaf, OnEvent) and not leaf.met}
    assert len(set(wake.patterns(latched))) == len(wake.patterns(latched))
    assert wake.wants_load(latched) is any(isinstance(leaf, OnLoad) for leaf in ends)


@given(CONDITIONS, st.lists(HAPPENINGS, max_size=6))
@example(OnEvent("ä*", "ä.b"), [])
def test_a_condition_comes_back_from_json_as_it_was(condition: Condition, happenings: list[Happening]) -> None:
    latched = after(condition, happenings)
    assert wake.from_json(wake.to_json(latched)) == latched


@given(CONDITIONS, st.sampled_from(NAMES))
def test_what_latches_nothing_gives_back_the_same_object(condition: Condition, name: str) -> None:
    latched = wake.heard(condition, name)
    assert (latched is condition) is (latched == condition)


def test_a_time_counts_from_the_moment_it_names() -> None:
    condition = wake.at(100)
    assert wake.next_time(condition) == 100
    assert not wake.is_met(wake.passed(condition, 99.9))
    assert wake.is_met(wake.passed(condition, 100))
    assert wake.next_time(wake.passed(condition, 100)) is None


def test_a_time_may_be_in_any_zone() -> None:
    moment = datetime(2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=-5)))
    assert wake.at(moment) == At(datetime(2027, 1, 1, 17, tzinfo=UTC).timestamp())


@pytest.mark.parametrize("wanted", list(Priority))
@pytest.mark.parametrize("given", list(Priority))
def test_mail_counts_from_its_priority_upwards(wanted: Priority, given: Priority) -> None:
    order = ["low", "normal", "high", "urgent"]
    met = wake.is_met(wake.got_mail(wake.mail(wanted), given))
    assert met is (order.index(given) >= order.index(wanted))


def test_load_is_as_it_is_now_and_unknown_load_is_not_low() -> None:
    condition = wake.load_below(cpu=0.5, awake=10)
    assert wake.is_met(condition, cpu=0.4, awake=9)
    assert not wake.is_met(condition, cpu=0.5, awake=9)
    assert not wake.is_met(condition, cpu=0.4, awake=10)
    assert not wake.is_met(condition, cpu=0.4)
    assert not wake.is_met(condition)
    assert wake.is_met(wake.load_below(cpu=0.5), cpu=0.0)


def test_the_wake_reason_names_what_woke_it() -> None:
    either = wake.any_of(wake.at(100), wake.event("data_ready"), wake.event("alerts.*"), wake.mail("high"))
    assert wake.reason(either) == ""
    assert wake.reason(wake.passed(either, 100)) == "time"
    assert wake.reason(wake.heard(either, "data_ready")) == "event data_ready"
    assert wake.reason(wake.heard(either, "alerts.disk")) == "event alerts.disk (alerts.*)"
    assert wake.reason(wake.got_mail(either, "urgent")) == "mail high"
    assert wake.reason(wake.passed(wake.got_mail(either, "high"), 100)) == "time"
    assert wake.reason(wake.load_below(cpu=0.5), cpu=0.1) == "load"


def test_the_wake_reason_names_all_conditions_of_all_of() -> None:
    both = wake.all_of(wake.event("data_ready"), wake.any_of(wake.at(100), wake.mail("low")), wake.load_below(awake=3))
    latched = wake.got_mail(wake.heard(both, "data_ready"), "normal")
    assert wake.reason(latched, awake=3) == ""
    assert wake.reason(latched, awake=2) == "event data_ready and mail low and load"


def told(condition: Condition) -> str:
    return wake.described(condition, lambda time: f"{time:g}")


def test_a_wake_condition_is_described_in_words() -> None:
    some = wake.any_of(wake.at(9), wake.any_of(wake.event("alerts.*"), wake.mail("high")))
    assert told(some) == "9 or event alerts.* or mail of at least high"
    every = wake.all_of(wake.at(9), some, wake.mail("low"), wake.load_below(cpu=0.5, awake=3))
    assert told(every) == (
        "9 and (9 or event alerts.* or mail of at least high) and mail and load below 0.5 with fewer than 3 awake"
    )
    assert told(wake.load_below(awake=3)) == "fewer than 3 awake"


def test_met_conditions_are_not_described() -> None:
    every = wake.all_of(wake.event("a"), wake.any_of(wake.at(9), wake.event("b")), wake.event("c"))
    assert told(wake.heard(every, "a")) == "(9 or event b) and event c"
    assert told(wake.heard(wake.heard(every, "a"), "c")) == "9 or event b"
    assert told(wake.heard(wake.heard(every, "a"), "b")) == "event c"
    assert told(wake.heard(wake.event("a"), "a")) == ""


@given(CONDITIONS, st.lists(HAPPENINGS, max_size=6))
def test_words_are_found_for_all_that_is_still_waited_for(condition: Condition, happenings: list[Happening]) -> None:
    latched = after(condition, happenings)
    assert bool(told(latched)) is not wake.is_met(latched)


def test_the_first_event_heard_is_the_one_remembered() -> None:
    latched = wake.heard(wake.heard(wake.event("alerts.*"), "alerts.a"), "alerts.b")
    assert latched == OnEvent("alerts.*", "alerts.a")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: wake.any_of(), "any_of needs at least one"),
        (lambda: wake.all_of(), "all_of needs at least one"),
        (lambda: wake.any_of("alerts.*"), "a wake condition is expected"),  # type: ignore[arg-type]
        (lambda: wake.any_of(wake.at(1), None), "a wake condition is expected"),  # type: ignore[arg-type]
        (lambda: wake.mail("whenever"), "use one of low, normal, high, urgent"),
        (lambda: wake.got_mail(wake.mail(), "whenever"), "use one of low, normal, high, urgent"),
        (lambda: wake.event("a b"), "spaces"),
        (lambda: wake.heard(wake.event("*"), "a*"), "must not contain"),
        (lambda: wake.at(datetime(2027, 1, 1)), "must have a time zone"),
        (lambda: wake.at(float("nan")), "seconds since 1970"),
        (lambda: wake.at(float("inf")), "seconds since 1970"),
        (lambda: wake.at("noon"), "seconds since 1970"),  # type: ignore[arg-type]
        (lambda: wake.at(True), "seconds since 1970"),
        (lambda: wake.load_below(), "needs cpu, awake or both"),
        (lambda: wake.load_below(cpu=50), "such as 0.5"),
        (lambda: wake.load_below(cpu=0), "such as 0.5"),
        (lambda: wake.load_below(cpu="half"), "such as 0.5"),  # type: ignore[arg-type]
        (lambda: wake.load_below(awake=0), "whole number"),
        (lambda: wake.load_below(awake=1.5), "whole number"),  # type: ignore[arg-type]
        (lambda: wake.any_of(*[wake.at(1)] * 101), "100 parts"),
        (lambda: wake.any_of(*[wake.any_of(*[wake.at(1)] * 51)] * 2), "100 parts"),
    ],
)
def test_what_cannot_be_waited_for_is_refused(make: Callable[[], Condition], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        make()


def test_conditions_may_be_eight_deep_and_have_a_hundred_parts() -> None:
    condition = wake.any_of(*[wake.at(n) for n in range(100)])
    for _ in range(7):
        condition = wake.all_of(condition)
    assert wake.from_json(wake.to_json(condition)) == condition
    with pytest.raises(Invalid, match="8 levels deep"):
        wake.all_of(condition)
    with pytest.raises(Invalid):
        wake.from_json(wake.to_json(AllOf((condition,))))


def test_a_condition_that_only_looks_small_is_refused_at_once() -> None:
    condition: Condition = wake.at(1)
    for _ in range(8):
        condition = AnyOf((condition,) * 99)
    with pytest.raises(Invalid, match="100 parts"):
        wake.check(condition)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "7",
        "[" * 100_000,
        '{"any":[' * 5_000,
        '{"any":[]}',
        '{"any":{}}',
        '{"any":[7]}',
        '{"any":[{"at":1}],"all":[{"at":1}]}',
        '{"at":"noon"}',
        '{"at":NaN}',
        '{"at":1e400}',
        '{"at":true}',
        '{"at":1,"met":false}',
        '{"at":1,"met":1}',
        '{"at":1,"met":true,"more":1}',
        '{"event":"a","met":""}',
        '{"event":"a","met":true}',
        '{"event":"a","met":"a*"}',
        '{"event":7}',
        '{"mail":"whenever"}',
        '{"mail":["low"]}',
        '{"mail":"low","met":"yes"}',
        '{"load":{}}',
        '{"load":{"cpu":null,"awake":null}}',
        '{"load":{"cpu":7,"awake":null}}',
        '{"load":{"cpu":0.5,"awake":null,"more":1}}',
        None,
        7,
    ],
)
def test_garbage_is_no_condition(text: str) -> None:
    with pytest.raises(Invalid):
        wake.from_json(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["low", "a.*", "a"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["any", "all", "at", "event", "mail", "load", "cpu", "awake", "met"]), inner
            )
        ),
    )
)
def test_whatever_is_read_is_a_condition_or_refused(plain: object) -> None:
    try:
        condition = wake.from_json(json.dumps(plain))
    except Invalid:
        return
    assert wake.from_json(wake.to_json(condition)) == condition
    assert isinstance(wake.is_met(condition), bool)


def test_priorities_have_levels() -> None:
    assert [priority.level for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.URGENT)] == [
        0,
        1,
        2,
        3,
    ]


@given(st.floats(0, 4e9), st.floats(0, 4e9), st.sampled_from(Priority), st.sampled_from(Priority))
def test_the_more_urgent_of_two_comes_first_until_the_other_has_waited_long(
    one: float, other: float, urgent: Priority, lower: Priority
) -> None:
    seconds = {"low": 0, "normal": 60, "high": 600, "urgent": 3600}
    head_start = seconds[urgent] - seconds[lower]
    if one - other < head_start - 1e-3:
        assert rank(one, urgent) < rank(other, lower)
    if one - other > head_start + 1e-3:
        assert rank(one, urgent) > rank(other, lower)


@pytest.mark.parametrize(("priority", "behind"), [("normal", 59.0), ("high", 599.0), ("urgent", 3599.0)])
def test_a_newer_one_overtakes_low_ones_that_are_not_old(priority: str, behind: float) -> None:
    assert rank(1000 + behind, Priority(priority)) < rank(1000, Priority.LOW) < rank(1002 + behind, Priority(priority))
    assert OnMail(Priority(priority)) == wake.mail(priority)
