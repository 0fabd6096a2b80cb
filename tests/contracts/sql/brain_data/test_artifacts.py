"""B2 on every store: files that brains save are kept in versions, and gone with their owner."""

from __future__ import annotations

from roost.core.brain_data.artifacts import Artifact
from roost.core.values.ids import encode
from roost.stores.sql import retention
from roost.stores.sql.brain_data import artifacts, brain_context
from tests.contracts.conftest import Driven


def save(store: Driven, number: int, owner: str = "talk_1", lane: str = "", name: str = "a.txt") -> int:
    made = f"artifact_{encode(number * 1_000_000, 5)}"
    version: int = store.write(artifacts.save, made, owner, lane, name, f"content {number}", "{}", number * 1_000.0)
    return version


def test_each_save_is_a_version_and_a_repeated_one_the_same(store: Driven) -> None:
    assert [save(store, 1), save(store, 2), save(store, 2), save(store, 3, name="b.txt")] == [0, 1, 1, 0]
    newest = Artifact("a.txt", 1, "content 2", "{}", 2_000.0)
    assert store.read(artifacts.load, "talk_1", "", "a.txt", None) == newest
    assert store.read(artifacts.load, "talk_1", "", "a.txt", 0).content == "content 1"
    assert store.read(artifacts.load, "talk_1", "", "a.txt", 7) is None
    assert store.read(artifacts.load, "talk_2", "", "a.txt", None) is None
    assert store.read(artifacts.names, "talk_1", "") == ["a.txt", "b.txt"]
    assert [one.version for one in store.read(artifacts.versions, "talk_1", "", "a.txt")] == [0, 1]


def test_they_are_removed_by_name_and_with_their_owner(store: Driven) -> None:
    for number, owner in enumerate(("talk_1", "talk_1", "talk_2"), 1):
        save(store, number, owner, name=f"{number}.txt")
    store.write(artifacts.remove, "talk_1", "", "1.txt")
    assert store.read(artifacts.names, "talk_1", "") == ["2.txt"]
    store.write(brain_context.forget, "talk_1")
    assert [store.read(artifacts.names, talk, "") for talk in ("talk_1", "talk_2")] == [[], ["3.txt"]]


def test_those_of_lanes_go_when_they_are_too_old(store: Driven) -> None:
    for owner, lane in (("talk_1", ""), ("ann/d", "from:x"), ("user", "app/ann")):
        for number in (1, 3):
            made = f"artifact_{encode(number * 1_000_000, len(owner))}"
            store.write(artifacts.save, made, owner, lane, "a.txt", "content", "{}", number * 1_000.0)
    page = store.read(retention.old, "artifacts", 2_000.0, (), 10)
    assert len(page.keys) == 1
    assert store.write(retention.remove, "artifacts", 2_000.0, page.keys) == 1
    assert [one.version for one in store.read(artifacts.versions, "ann/d", "from:x", "a.txt")] == [1]
