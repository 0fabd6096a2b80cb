"""M4: entries, and what comes in as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.log import digests
from roost.core.meetings.log import entries as e
from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Bounds,
    Called,
    Declined,
    Ended,
    EntryId,
    EntryKind,
    Failed,
    FloorRule,
    Granted,
    Invited,
    Joined,
    Kicked,
    Left,
    Moved,
    Passed,
    Raised,
    Said,
    Started,
    Withheld,
)
from roost.core.meetings.log.digests import Digest, Head
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.shapes import MOST_NUMBER, MOST_TEXT
from roost.core.meetings.log.stamps import LATEST, Stamp
from roost.errors import Invalid
from tests.core.meetings.cast import ADA, ANN, BEN, HOST, MEETING, NOON, call

WHO = st.sampled_from([HOST, ADA, BEN, ANN, "agent:ünï/x.y-z"])
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=50)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
BOUNDS = st.builds(Bounds, st.integers(9, 256), st.integers(1, 99), st.integers(1, 99), st.integers(0, 99))
CALLS = st.builds(
    Called,
    topic=st.sampled_from(["Lunch", "Öl für 2 €"]),
    deadline=st.integers(0, LATEST),
    required=st.lists(st.sampled_from([ADA, BEN]), unique=True).map(tuple),
    optional=st.lists(st.sampled_from([ANN, "user:bob"]), unique=True).map(tuple),
    floor=st.sampled_from(FloorRule),
    moderator=st.none() | WHO,
    game=st.none() | st.just("tic-tac-toe"),
    setting=DATA,
    open=st.booleans(),
    bounds=BOUNDS,
)
BODIES: st.SearchStrategy[Body] = st.one_of(
    CALLS,
    st.builds(Invited, WHO, st.booleans()),
    st.builds(Declined, TEXT | st.just("")),
    st.builds(Left, TEXT | st.just("")),
    st.builds(Kicked, WHO, TEXT | st.just("")),
    st.builds(Failed, TEXT),
    st.builds(Granted, WHO),
    st.builds(Passed, WHO),
    st.builds(Said, TEXT, st.lists(WHO, max_size=3).map(tuple), st.booleans()),
    st.builds(Moved, st.builds(EntryId, WHO, st.integers(1, MOST_NUMBER)), DATA),
    st.builds(Ended, TEXT | st.just("")),
    st.builds(Withheld, st.sampled_from(EntryKind), TEXT | st.just(""), TEXT, st.just("") | st.just("run_1")),
    st.sampled_from([Accepted(), Joined(), Started(), Raised()]),
)
ENTRIES = st.builds(
    Entry,
    st.just(MEETING),
    st.just(HOST),
    st.integers(1, MOST_NUMBER),
    st.builds(Stamp, st.integers(0, LATEST), st.integers(0, 2**40)),
    st.dictionaries(st.sampled_from([ADA, BEN, ANN]), st.integers(1, MOST_NUMBER)),
    BODIES,
)


@given(ENTRIES)
def test_an_entry_comes_back_from_json_as_it_was(entry: Entry) -> None:
    text = e.to_json(entry)
    again = e.from_json(text)
    assert again == entry
    assert e.to_json(again) == text
    assert e.check(entry) == entry
    assert text.encode()


def test_every_kind_has_a_body() -> None:
    seen = {kind.value for kind in EntryKind}
    assert {type(body).__name__.lower() for body in (Accepted(), Started(), call(), Said("x"))} <= seen
    assert Entry(MEETING, HOST, 1, Stamp(1), {}, Said("x")).kind is EntryKind.SAID


def test_an_entry_knows_its_own_past_and_what_it_has_seen() -> None:
    entry = Entry(MEETING, ADA, 3, Stamp(NOON), {HOST: 2}, Said("x"))
    assert entry.knew(EntryId(ADA, 2))
    assert not entry.knew(EntryId(ADA, 3))
    assert entry.knew(EntryId(HOST, 2))
    assert not entry.knew(EntryId(HOST, 3))
    assert not entry.knew(EntryId(BEN, 1))
    assert str(entry.id) == "entry 3 of agent:ann/ada"


def plain(**changes: Any) -> str:
    good = json.loads(e.to_json(Entry(MEETING, HOST, 2, Stamp(NOON), {ADA: 1}, Said("hi"))))
    return json.dumps({**good, **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "7",
        "[" * 100_000,
        None,
        7,
        plain(more=1),
        plain(meeting=""),
        plain(meeting=7),
        plain(meeting="a\nb"),
        plain(author="ann"),
        plain(author="agent:d"),
        plain(author="agent:/d"),
        plain(author="user:"),
        plain(author=None),
        plain(number=0),
        plain(number=-1),
        plain(number=True),
        plain(number=1.0),
        plain(number="1"),
        plain(number=MOST_NUMBER + 1),
        plain(at=NOON),
        plain(at=[NOON]),
        plain(at=[NOON, -1]),
        plain(at=[-1, 0]),
        plain(at=[LATEST + 1, 0]),
        plain(at=[NOON, 0, 0]),
        plain(at=[True, 0]),
        plain(seen=[]),
        plain(seen={"ann": 1}),
        plain(seen={ADA: 0}),
        plain(seen={ADA: "1"}),
        plain(seen={HOST: 1}),
        plain(seen={f"user:{n}": 1 for n in range(5_000)}),
        plain(kind="shouted"),
        plain(kind=None),
        plain(kind=["said"]),
        plain(body=None),
        plain(body={}),
        plain(body={"text": "hi"}),
        plain(body={"text": "hi", "to": [], "hand": False, "more": 1}),
        plain(body={"text": "", "to": [], "hand": False}),
        plain(body={"text": "a\0b", "to": [], "hand": False}),
        plain(body={"text": "\ud800", "to": [], "hand": False}),
        plain(body={"text": "x" * (MOST_TEXT + 1), "to": [], "hand": False}),
        plain(body={"text": "hi", "to": "agent:ann/ada", "hand": False}),
        plain(body={"text": "hi", "to": ["ada"], "hand": False}),
        plain(body={"text": "hi", "to": [ADA] * 257, "hand": False}),
        plain(body={"text": "hi", "to": [], "hand": 0}),
        plain(kind="moved", body={"answers": [HOST], "move": 1}),
        plain(kind="moved", body={"answers": [HOST, 0], "move": 1}),
        plain(kind="moved", body={"answers": [HOST, 1], "move": float("nan")}),
        plain(kind="moved", body={"answers": [HOST, 1], "move": json.loads("[" * 70 + "]" * 70)}),
        plain(kind="kicked", body={"who": "ada", "reason": ""}),
        plain(kind="failed", body={"reason": ""}),
        plain(kind="started", body={"why": "not"}),
    ],
)
def test_garbage_is_no_entry(text: str) -> None:
    with pytest.raises(Invalid):
        e.from_json(text)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"required": (ADA, ADA)}, "twice"),
        ({"required": (ADA,), "optional": (ADA,)}, "twice"),
        ({"required": (HOST,)}, "need not be invited"),
        ({"required": (ADA, BEN), "bounds": Bounds(participants=2)}, "2 are allowed"),
        ({"bounds": Bounds(words=0)}, "words must be"),
        ({"floor": "loudest"}, "floor rule"),
        ({"topic": "a\nb"}, "printable"),
        ({"deadline": -1}, "deadline"),
        ({"moderator": "ada"}, "not valid"),
        ({"setting": {1, 2}}, "JSON"),
    ],
)
def test_a_call_that_cannot_be_answered_is_refused(changes: dict[str, Any], says: str) -> None:
    body = Called(**{"topic": "Lunch", "deadline": NOON, **changes})
    with pytest.raises(Invalid, match=says):
        e.check(Entry(MEETING, HOST, 1, Stamp(NOON), {}, body))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["said", "moved", HOST, ADA, "hi", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["meeting", "author", "number", "at", "seen", "kind", "body", "text", "to", "hand"]), inner
        )
    ),
)


@given(JUNK, st.sampled_from(["meeting", "author", "number", "at", "seen", "kind", "body"]))
def test_whatever_is_read_is_an_entry_or_refused(junk: object, key: str) -> None:
    for text in (json.dumps(junk), plain(**{key: junk})):
        try:
            entry = e.from_json(text)
        except Invalid:
            continue
        assert e.from_json(e.to_json(entry)) == entry


def test_a_digest_comes_back_from_json_as_it_was() -> None:
    digest = Digest(MEETING, HOST, {ADA: Head(3, "0" * 32)})
    assert digests.from_json(digests.to_json(digest)) == digest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        None,
        '{"meeting":"m","creator":"user:a","heads":[]}',
        '{"meeting":"m","creator":"a","heads":{}}',
        '{"meeting":"","creator":"user:a","heads":{}}',
        '{"meeting":"m","creator":"user:a","heads":{},"more":1}',
        '{"meeting":"m","creator":"user:a","heads":{"user:b":[1]}}',
        '{"meeting":"m","creator":"user:a","heads":{"user:b":[0,"00000000000000000000000000000000"]}}',
        '{"meeting":"m","creator":"user:a","heads":{"b":[1,"00000000000000000000000000000000"]}}',
        '{"meeting":"m","creator":"user:a","heads":{"user:b":[1,"0"]}}',
        '{"meeting":"m","creator":"user:a","heads":{"user:b":[1,7]}}',
    ],
)
def test_garbage_is_no_digest(text: str) -> None:
    with pytest.raises(Invalid):
        digests.from_json(text)
