"""S7: what cannot be used is refused in one short sentence, however ill-behaved it is."""

from __future__ import annotations

from typing import Any

import pytest

from roost.core import addresses, checks
from roost.core.agents import AgentConfig, configured
from roost.core.priority import Priority
from roost.core.wake import AnyOf, Condition, OnEvent, check
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
    with pytest.raises(Invalid, match="is a person"):
        addresses.of_agent("user:ann", "ann")
    with pytest.raises(Invalid, match="use agent:NAME"):
        addresses.of_agent(True, "ann")
