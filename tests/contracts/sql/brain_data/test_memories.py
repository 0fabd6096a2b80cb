"""A17 on every store: what an agent remembers is found again, in the same order everywhere, and forgotten whole."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.core.agents.agent import AgentConfig, State
from roost.core.brain_data.memories import Memory, Remember, asked, score
from roost.core.envelopes.outcomes import StateChange
from roost.errors import LimitReached, NotFound
from roost.hosts.pending import drive
from roost.ports import Pending, Tx
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.brain_data import memories
from roost.stores.sql.sending import effects
from tests.contracts.conftest import Driven

MOST = 1_000
numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def an_agent(store: Driven) -> None:
    create(store, "d")


def create(store: Driven, agent: str, user: str = "ann") -> None:
    change = StateChange(f"change_{next(numbers):09}", 1.0, None, State.IDLE, "created", user)
    store.write(agents.create, user, (agent,), AgentConfig(), change, 10_000)


def remember(store: Driven, *texts: str, agent: str = "d", user: str = "ann", **keyed: str) -> None:
    for key, text in [*((f"memory_{next(numbers):09}", text) for text in texts), *keyed.items()]:
        store.write(memories.remember, user, agent, key, text, float(next(numbers)), MOST)


def found(store: Driven, query: str = "", *, agent: str = "d", user: str = "ann", limit: int = MOST) -> list[str]:
    """Return the texts that the owner finds; the agent itself finds the same."""
    listed: list[Memory] = store.read(memories.listed, user, agent, asked(query), limit, None)
    assert store.read(memories.search, f"{user}/{agent}", asked(query), limit) == listed
    return [one.text for one in listed]


def rows(store: Driven, table: str) -> list[tuple[Any, ...]]:
    def all_of(tx: Tx) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in tx.read(f"SELECT * FROM {table}")]

    got: list[tuple[Any, ...]] = store.read(all_of)
    return got


def test_what_has_the_most_of_the_query_comes_first_then_the_newest(store: Driven) -> None:
    remember(store, "Ann likes green", "Bob likes blue", "The door is green", "Ann likes green doors")
    assert found(store, "which GREEN does Ann like?") == [
        "Ann likes green doors",
        "Ann likes green",
        "The door is green",
    ]
    assert found(store, "likes") == ["Ann likes green doors", "Bob likes blue", "Ann likes green"]
    assert found(store, "green green the") == ["The door is green", "Ann likes green doors", "Ann likes green"]
    assert found(store, "green", limit=2) == ["Ann likes green doors", "The door is green"]
    assert found(store, "gree") == []


def test_long_words_count_more_than_short_ones(store: Driven) -> None:
    remember(store, "Her favourite colour", "It is not", "日本語")
    assert found(store, "is it the colour 日本語") == ["Her favourite colour", "It is not", "日本語"]


def test_an_empty_query_gives_the_newest_and_one_without_words_nothing(store: Driven) -> None:
    remember(store, "one", "two", "?!")
    assert found(store) == found(store, "  ") == ["?!", "two", "one"]
    assert found(store, limit=1) == ["?!"]
    assert found(store, "?!") == []


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        "two*",
        '"two" NEAR "one"',
        "two AND one",
        "-two",
        "two:one",
        "(two",
        "two\0one",
        "two\ud800",
        "tw%",
        "%s ?",
        ":two",
        "two; DROP TABLE memories",
        "\\two",
        "{two}",
        "^two",
        "two & !one | <->",
        "TWO\u0301",
        "🎉 two",
    ],
)
def test_whatever_is_asked_is_taken_as_words(store: Driven, query: str) -> None:
    remember(store, "one")
    remember(store, "two", "three")
    wanted = asked(query) or ()
    assert found(store, query) == [text for text in ("two", "one") if text in wanted]


def test_the_same_key_replaces_what_was_there_and_its_words(store: Driven) -> None:
    remember(store, colour="Ann likes green")
    remember(store, "Bob likes blue")
    remember(store, colour="Ann likes red")
    assert found(store, "green") == []
    assert found(store) == ["Ann likes red", "Bob likes blue"]
    assert found(store, "likes") == ["Ann likes red", "Bob likes blue"]
    assert len(rows(store, "memories")) == 2
    assert len(rows(store, "memory_words")) == 6


def test_what_is_forgotten_is_gone_from_the_index_too(store: Driven) -> None:
    remember(store, long=" ".join(f"word{n}" for n in range(1_000)))
    remember(store, "word7", "?!")
    assert store.write(memories.forget, "ann", "d", "long") is True
    assert store.write(memories.forget, "ann", "d", "long") is False
    assert found(store) == ["?!", "word7"]
    assert [row[1] for row in rows(store, "memory_words")] == ["word7"]


def test_deleting_an_agent_deletes_its_own_memories_only(store: Driven) -> None:
    create(store, "e")
    create(store, "d", "bob")
    remember(store, "mine", "green")
    remember(store, "green", agent="e")
    remember(store, "green", user="bob")
    store.write(lifecycle.delete, "ann", "d")
    assert sorted(row[0] for row in rows(store, "memories")) == ["ann/e", "bob/d"]
    assert sorted(row[:2] for row in rows(store, "memory_words")) == [("ann/e", "green"), ("bob/d", "green")]
    create(store, "d")
    assert found(store) == found(store, "green") == []


def test_an_agent_finds_its_own_memories_only(store: Driven) -> None:
    create(store, "e")
    create(store, "d", "bob")
    remember(store, "green one")
    assert found(store, "green", agent="e") == found(store, "green", user="bob") == []
    for user, agent in (("bob", "e"), ("ann", "never")):
        with pytest.raises(NotFound, match="no agent"):
            found(store, user=user, agent=agent)
        with pytest.raises(NotFound, match="no agent"):
            remember(store, "x", user=user, agent=agent)
        with pytest.raises(NotFound, match="no agent"):
            store.write(memories.forget, user, agent, "x")


def test_no_more_than_the_bound_are_remembered_but_one_can_replace_another(store: Driven) -> None:
    remember(store, a="one", b="two")
    with pytest.raises(LimitReached, match="has 2 memories"):
        store.write(memories.remember, "ann", "d", "c", "three", 9.0, 2)
    store.write(memories.remember, "ann", "d", "a", "four", 9.0, 2)
    store.write(memories.forget, "ann", "d", "b")
    store.write(memories.remember, "ann", "d", "c", "three", 9.0, 2)
    assert found(store) == ["three", "four"]
    assert store.read(memories.find_key, "ann/d", "c") == (True, 2)
    assert store.read(memories.find_key, "ann/d", "b") == (False, 2)


@pytest.mark.parametrize("query", ["", "green or blue", "green"])
def test_pages_follow_each_other_without_gap_or_overlap(store: Driven, query: str) -> None:
    remember(store, *(f"{'green' if n % 2 else ''} {'blue' if n % 3 else ''} {n}" for n in range(23)))
    whole = store.read(memories.listed, "ann", "d", asked(query), MOST, None)
    paged: list[Memory] = []
    while page := store.read(memories.listed, "ann", "d", asked(query), 4, paged[-1].key if paged else None):
        paged += page
    assert paged == whole
    with pytest.raises(NotFound, match="no memory 'never'"):
        store.read(memories.listed, "ann", "d", asked(query), 4, "never")


def test_effects_of_turns_are_numbered_after_what_is_there(store: Driven) -> None:
    remember(store, a="one")
    for key, text in (("b", "two"), ("a", "three"), ("b", None), ("never", None)):
        assert store.write(effects.post, Remember("ann/d", key, text, 5.0)) == ()
    assert store.write(effects.post, Remember("ann/gone", "a", "x", 5.0)) == ()
    assert found(store) == ["three"]
    assert [row[0] for row in rows(store, "memory_words")] == ["ann/d"]


@pytest.mark.parametrize("by", ["people", "turns"])
def test_many_writers_at_once_lose_nothing_and_number_each_once(store: Driven, by: str) -> None:
    def write(n: int) -> Pending[Any]:
        if by == "turns":
            return store.engine.write(effects.post, Remember("ann/d", f"key{n}", "same words", 5.0), key=str(n))
        return store.engine.write(memories.remember, "ann", "d", f"key{n}", "same words", 5.0, MOST, key=str(n))

    under_way = [write(n) for n in range(200)]

    async def all_done() -> None:
        for one in under_way:
            await one

    drive(all_done())
    assert len(found(store, "same")) == 200
    assert {row[1] for row in rows(store, "memories")} == set(range(1, 201))


WORDS = st.lists(st.sampled_from(["green", "Blue", "the", "Café", "日本", "🎉", "x" * 70, "'", '"*-']), max_size=6)
TEXTS = st.one_of(WORDS.map(" ".join), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    texts=st.lists(st.tuples(st.sampled_from("abcdef"), TEXTS.filter(bool)), max_size=8),
    forgotten=st.sampled_from("abcdef"),
    query=st.one_of(TEXTS, st.text(st.characters(codec=None))),
)
def test_what_is_found_is_what_the_rule_says(
    store: Driven, texts: list[tuple[str, str]], forgotten: str, query: str
) -> None:
    agent = f"agent{next(numbers)}"
    create(store, agent)
    model: dict[str, str] = {}
    for key, text in texts:
        remember(store, agent=agent, **{key: text})
        model.pop(key, None)
        model[key] = text
    assert store.write(memories.forget, "ann", agent, forgotten) == (model.pop(forgotten, None) is not None)
    expected = list(reversed(model.values()))
    if (wanted := asked(query)) is not None:
        scores = [(score(text, wanted), text) for text in expected]
        expected = [text for one, text in sorted(scores, key=lambda pair: -pair[0]) if one]
    assert found(store, query, agent=agent) == expected
    store.write(lifecycle.delete, "ann", agent)
    assert rows(store, "memory_words") == rows(store, "memories") == []
