"""Search in messages, on every store, with and without blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from roost.core.talks.search import Hit, Place, parsed
from roost.ports import Params, Row, Tx
from roost.stores.sql.talks import answers, messages, search, talks
from tests.contracts.conftest import Driven

T = TypeVar("T")


@pytest.fixture(params=["with blocks", "without blocks"])
def indexed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "with blocks")


def talk(store: Driven, *texts: str, talk_id: str = "talk_1", user: str = "ann") -> str:
    store.write(talks.create, talk_id, user, "echo", "queue", f"title of {talk_id}", "{}", 100)
    for number, text in enumerate(texts):
        say(store, text, f"{talk_id}_{number}", talk_id=talk_id, user=user)
    return talk_id


def say(store: Driven, text: str, envelope: str, *, talk_id: str = "talk_1", user: str = "ann") -> None:
    store.write(messages.post, user, talk_id, text, None, "queue", "", envelope, 0.0, 1000)


def write_index(store: Driven) -> int:
    """Write all blocks that are missing; return how many."""
    count = 0
    while True:
        due, _ = store.read(search.outdated, "", 1000)
        blocks = store.read(search.missing_blocks, due, 10_000)
        if not blocks:
            return count
        store.write(search.write_blocks, blocks)
        count += len(blocks)


def pages(store: Driven, query: str, limit: int, user: str, talk_id: str | None) -> Iterator[list[Hit]]:
    place: Place | None = None
    while True:
        found = store.read(search.search, user, parsed(query), place, talk_id, limit)
        yield [hit for hit, _ in found.hits]
        place = found.place
        if place is None:
            return
        place = Place.decode(place.encode())


def found(store: Driven, query: str, *, limit: int = 3, user: str = "ann", talk_id: str | None = None) -> list[str]:
    hits = [hit for page in pages(store, query, limit, user, talk_id) for hit in page]
    return [f"{hit.talk_session_id}:{hit.seq}" for hit in hits]


QUERIES = {
    "apple": [2, 1],
    "APPLE": [2, 1],
    "app": [3, 2, 1],
    "app ": [],
    "apple pie": [2],
    "pie apple": [2],
    '"apple pie"': [],
    '"pie and apple"': [2],
    '"pie and app': [2],
    "cafe": [4],
    "CAFÉ": [4],
    "東京": [5],
    "京東": [],
    "🐦": [5],
    "e_mail": [6],
    "mail": [6],
    "nothing": [],
    "": [],
    '"': [],
    "%": [],
    "_": [],
    "a%e": [],
}


@pytest.mark.parametrize("query", QUERIES)
def test_messages_are_found_by_all_words_of_a_query(store: Driven, indexed: bool, query: str) -> None:
    talk(store, "One Apple", "Pie and apple", "an application", "Le café", "in 東京都 🐦", "an e-mail")
    if indexed:
        assert write_index(store) == 1
    if terms := parsed(query):
        assert found(store, query) == [f"talk_1:{seq}" for seq in QUERIES[query]], terms
    else:
        assert QUERIES[query] == []


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_the_last_used_talk_comes_first_and_its_newest_message(store: Driven, indexed: bool, limit: int) -> None:
    talk(store, "bird 1", "cat", "bird 3", talk_id="talk_b")
    talk(store, "bird 1", "bird 2", talk_id="talk_a")
    if indexed:
        write_index(store)
    say(store, "bird 4", "env_4", talk_id="talk_b")
    assert found(store, "bird", limit=limit) == ["talk_b:4", "talk_b:3", "talk_b:1", "talk_a:2", "talk_a:1"]
    assert found(store, "bird", limit=limit, talk_id="talk_a") == ["talk_a:2", "talk_a:1"]


def test_a_talk_that_is_used_while_pages_are_read_is_not_repeated(store: Driven) -> None:
    talk(store, "bird 1", talk_id="talk_a")
    talk(store, "bird 1", "bird 2", "bird 3", talk_id="talk_b")
    first = store.read(search.search, "ann", parsed("bird"), None, None, 2)
    say(store, "bird 4", "env_4", talk_id="talk_b")
    second = store.read(search.search, "ann", parsed("bird"), first.place, None, 9)
    third = store.read(search.search, "ann", parsed("bird"), second.place, None, 9)
    assert [hit.seq for hit, _ in first.hits + second.hits] == [3, 2, 1]
    assert [hit.talk_session_id for hit, _ in third.hits] == ["talk_a"]
    assert third.place is None


def test_other_users_find_nothing_of_it(store: Driven, indexed: bool) -> None:
    talk(store, "a secret")
    talk(store, "no news", talk_id="talk_2", user="bob")
    if indexed:
        write_index(store)
    assert found(store, "secret", user="bob") == []
    assert found(store, "secret", user="bob", talk_id="talk_1") == []
    stolen = store.read(search.search, "bob", parsed("secret"), Place(0.0, "talk_1", 99), None, 9)
    assert stolen.hits == ()


def test_an_answer_is_found_when_it_is_closed_and_never_if_it_is_withdrawn(store: Driven, indexed: bool) -> None:
    talk(store, "question")
    claimed = store.read(talks.load, "ann", "talk_1", 10)
    store.write(answers.open_answer, "talk_1", "run_1", claimed.epoch, "first words")
    if indexed:
        assert write_index(store) == 1
    say(store, "meanwhile", "env_2")
    assert found(store, "words") == []
    assert found(store, "meanwhile") == ["talk_1:3"]
    store.write(answers.split_answer, "talk_1", "run_1", claimed.epoch, "first words and last")
    store.write(answers.open_answer, "talk_1", "run_1", claimed.epoch, "regretted words")
    store.write(messages.post, "ann", "talk_1", "stop", None, "rollback", "", "env_3", 0.0, 1000)
    if indexed:
        write_index(store)
    assert found(store, "words") == ["talk_1:2"]
    assert found(store, "regretted") == []


def blocks(store: Driven) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = store.read(
        lambda tx: tx.read("SELECT talk_id, first, last FROM search_blocks ORDER BY talk_id, first")
    )
    return [tuple(row) for row in found]  # type: ignore[misc]


def test_blocks_are_extended_until_they_are_full(store: Driven) -> None:
    talk(store, *(f"word{number}" for number in range(100)))
    assert write_index(store) == 2
    assert blocks(store) == [("talk_1", 1, 64), ("talk_1", 65, 100)]
    say(store, "one more", "env_more")
    say(store, "x" * search.BLOCK_CHARS, "env_long")
    say(store, "last", "env_last")
    assert found(store, "last") == ["talk_1:103"]
    assert write_index(store) == 2
    assert blocks(store) == [("talk_1", 1, 64), ("talk_1", 65, 102), ("talk_1", 103, 103)]
    assert write_index(store) == 0
    assert [found(store, word) for word in ("word0 ", "word99", "more")] == [
        ["talk_1:1"],
        ["talk_1:100"],
        ["talk_1:101"],
    ]


def test_talks_are_looked_at_page_by_page(store: Driven) -> None:
    for name in ("talk_1", "talk_2", "talk_3"):
        talk(store, "a", talk_id=name)
    first, after = store.read(search.outdated, "", 2)
    assert (first, after) == (["talk_1", "talk_2"], "talk_2")
    assert store.read(search.outdated, after, 2) == (["talk_3"], "")
    assert len(store.read(search.missing_blocks, first, 1)) == 1


def test_a_deleted_talk_is_gone_from_the_index_at_once(store: Driven) -> None:
    talk(store, "a secret")
    due = store.read(search.missing_blocks, ["talk_1"], 100)
    write_index(store)
    store.write(talks.delete, "ann", "talk_1")
    assert blocks(store) == []
    store.write(search.write_blocks, due)  # read before it was deleted
    assert blocks(store) == []


def test_a_search_step_is_bounded(store: Driven) -> None:
    long = "x" * (search.STEP_CHARS // 2)
    talk(store, "needle", long, long, long)
    first = store.read(search.search, "ann", parsed("needle"), None, None, 9)
    assert first.hits == ()
    assert first.place is not None
    assert first.place.seq == 3
    assert found(store, "needle") == ["talk_1:1"]


class Meanwhile:
    """A transaction in which something is committed by others, after the given number of statements."""

    def __init__(self, tx: Tx, after: int, happens: Callable[[], object]) -> None:
        self._tx, self._left, self._happens = tx, after, happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def read(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        return self._then(self._tx.read(sql, params))

    def one(self, sql: str, params: Params = {}) -> Row | None:  # noqa: B006 — never changed
        return self._then(self._tx.one(sql, params))

    def _then(self, found: T) -> T:
        self._left -= 1
        if self._left == 0:
            self._happens()
        return found


@pytest.mark.parametrize("after", [1, 2, 3])
def test_nothing_is_missed_while_it_is_indexed_or_its_talk_is_used(
    store: Driven, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "TALKS", 2)
    for name in ("talk_1", "talk_2", "talk_3"):
        talk(store, "bird", talk_id=name)

    def happens() -> None:
        write_index(store)
        say(store, "more", "env_more", talk_id="talk_3")
        say(store, "more", "env_other", talk_id="talk_1")

    def look(tx: Tx) -> search.Found:
        return search.search(Meanwhile(tx, after, happens), "ann", parsed("bird"), None, None, 9)

    first = store.read(look)
    second = store.read(search.search, "ann", parsed("bird"), first.place, None, 9)
    found = [hit.talk_session_id for hit, _ in (*first.hits, *second.hits)]
    assert [name for name in ("talk_3", "talk_2") if name not in found] == []
    assert len(found) == len(set(found))


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_block_that_grows_while_it_is_read_is_returned_once(store: Driven, after: int) -> None:
    talk(store, "bird")

    def look(tx: Tx) -> list[search.WordBlock]:
        def happens() -> None:
            say(store, "more", "env_more")

        return search.missing_blocks(Meanwhile(tx, after, happens), ["talk_1"], 9999)

    blocks = store.read(look)
    assert len(blocks) == 1
    store.write(search.write_blocks, blocks)
    assert found(store, "bird") == ["talk_1:1"]
