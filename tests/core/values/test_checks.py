"""S7: what cannot be used is refused in one short sentence, however ill-behaved it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roost.core.agents.agent import AgentConfig, configured
from roost.core.agents.wake import AnyOf, Condition, OnEvent, check
from roost.core.values import addresses, checks
from roost.core.values.priority import Priority
from roost.errors import Invalid


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("it will not tell")

    __str__ = __repr__


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    return value


def deep_condition() -> Condition:
    condition: Condition = OnEvent("a")
    for _ in range(10_000):
        condition = AnyOf((condition,))
    return condition


WILD = pytest.mark.parametrize(
    "value", [Mute(), deep(), deep_condition(), "x" * 10_000_000, 10**400, 10**6000, b"x", None], ids=lambda _: ""
)


@WILD
@pytest.mark.parametrize(
    "refuse",
    [
        lambda value: checks.choice(value, "the priority", Priority),
        lambda value: checks.count(value, "the limit", least=1, most=5),
        lambda value: checks.seconds(value, "the timeout"),
        lambda value: checks.flag(value, "`start`"),
        lambda value: checks.name(value, "the name"),
        lambda value: addresses.parse(value, "ann"),
        lambda value: addresses.agent_id(value),
        lambda value: addresses.of_agent(value, "ann"),
        lambda value: configured(AgentConfig(), {"subscriptions": value}),
        lambda value: configured(AgentConfig(), {"subscriptions": [value]}),
        lambda value: configured(AgentConfig(), {"retry_delay": value}),
        lambda value: check(value),
    ],
)
def test_whatever_is_given_the_refusal_is_one_short_sentence(refuse: Any, value: object) -> None:
    with pytest.raises(Invalid) as refused:
        refuse(value)
    assert len(str(refused.value)) < 300


def test_a_time_that_no_calendar_has_is_refused() -> None:
    assert checks.seconds(checks.LONGEST, "the time") == checks.LONGEST
    with pytest.raises(Invalid, match="of at most 100 years"):
        checks.seconds(checks.LONGEST + 1, "the time")


def test_a_person_is_not_taken_for_an_agent() -> None:
    assert addresses.of_agent("d", "ann").key == "ann/d"
    assert addresses.of_agent("agent:bob/d", "ann").key == "bob/d"
    with pytest.raises(Invalid, match="is a user"):
        addresses.of_agent("user:ann", "ann")
    with pytest.raises(Invalid, match="use agent:NAME"):
        addresses.of_agent(True, "ann")


@pytest.mark.parametrize("value", [{"a": "\ud800"}, {"\udfff": 1}, ["\ud83d"]])
def test_data_with_half_of_a_surrogate_pair_is_refused(value: object) -> None:
    with pytest.raises(Invalid, match="half of a surrogate pair"):
        checks.data(value, "the data")


@pytest.mark.parametrize("value", ["🐓", "\\ud800", {"a": "\\ud83d\x00"}, [[]] * 100])
def test_data_that_only_looks_like_trouble_is_kept(value: object) -> None:
    assert checks.data(value, "the data") == value


def test_data_may_be_nested_so_deep_and_no_deeper() -> None:
    value: Any = 1
    for _ in range(checks.DEEPEST):
        value = {"a": 1, "b": value}
    assert checks.data(value, "the data") == value
    with pytest.raises(Invalid, match="nested too deep: 64 levels are allowed"):
        checks.data([value], "the data")


def test_what_is_tame_stays_as_it_is_and_the_rest_becomes_so() -> None:
    good = {"a": [1, None, True, "🐓", {"b": "\0"}]}
    assert checks.normalized(good) == good
    assert checks.normalized({"\ud800": ["a\udfff"]}) == {"\ufffd": ["a\ufffd"]}
    checks.data(checks.normalized(json.loads("[" * 800 + "]" * 800)), "the data")


def test_what_a_subscription_asks_for_is_bounded() -> None:
    wanted = {"event": "a", "fields": {"text": "x" * 9_000}}
    assert configured(AgentConfig(), {"subscriptions": [wanted]}).subscriptions[0].fields == wanted["fields"]
    with pytest.raises(Invalid, match="10,000 are allowed"):
        configured(AgentConfig(), {"subscriptions": [{"event": "a", "fields": {"text": "x" * 10_000}}]})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("agent:ann/d", "agent:d"),
        ("agent:ann/d and agent:ann/e.f, who won.", "agent:d and agent:e.f, who won."),
        ("agent:bob/d", "agent:bob/d"),
        ("agent:ann/ben/d is of ann/ben", "agent:ann/ben/d is of ann/ben"),
        ("user:ann, agent:joann/d, agent:ann/", "user:ann, agent:joann/d, agent:ann/"),
    ],
)
def test_people_are_shown_their_own_agents_by_the_names_they_give_them(text: str, shown: str) -> None:
    assert addresses.shortened(text, "ann") == shown
