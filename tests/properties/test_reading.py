"""T5, T6: a reader sees everything once, in order, to the byte, whenever it reads."""

from __future__ import annotations

from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st

import roost
from tests.brains_for_tests import Permits
from tests.conftest import eventually, everything, settled
from tests.properties.conftest import ANY_TEXT, USER, Home
from tests.properties.readers import Reader, said

TURNS = st.lists(st.tuples(ANY_TEXT, st.lists(ANY_TEXT, max_size=4)), min_size=1, max_size=3)
POLLS = st.lists(st.sets(st.integers(0, 2)), min_size=1, max_size=6)
"""Readers, of three, that look at each of the moments, over and over."""


@given(TURNS, POLLS)
def test_any_number_of_readers_see_each_message_exactly_once(
    home: Home, turns: list[tuple[str, list[str]]], polls: list[set[int]]
) -> None:
    talk, permits, moments = home.talk(), Permits(), cycle(polls)
    readers = [Reader(home, talk) for _ in range(3)]
    for question, chunks in turns:
        home.puppet.play(talk, *[act for chunk in chunks for act in (permits.wait, chunk)])
        home.say(talk, question)
        for _ in chunks:
            permits.give()
            for who in next(moments):
                readers[who].look()
        settled(home.service, USER, talk)
    for reader in [*readers, Reader(home, talk)]:
        reader.look_until_done()
        assert reader.texts() == said(turns)


@given(TURNS)
def test_after_the_end_of_streaming_each_message_is_there_once_and_rereading_adds_nothing(
    home: Home, turns: list[tuple[str, list[str]]]
) -> None:
    talk = home.talk()
    streamed: list[str] = []
    for question, chunks in turns:
        home.puppet.play(talk, *chunks)
        home.say(talk, question)
        streamed += [c.message.run_id or "" for c in home.service.stream_messages(USER, talk)]
    first, again = home.read(talk), home.read(talk)
    assert [(m.sender, m.content) for m in first.messages] == said(turns)
    assert {m.status for m in first.messages} == {"complete"}
    assert first == again
    assert home.read(talk, first.cursor).messages == ()


@given(st.lists(ANY_TEXT, min_size=2, max_size=5))
def test_each_part_of_an_answer_is_visible_before_its_end(home: Home, chunks: list[str]) -> None:
    talk, permits = home.talk(), Permits()
    home.puppet.play(talk, *[act for chunk in chunks for act in (permits.wait, chunk)], permits.wait)
    home.say(talk, "go")
    reader = Reader(home, talk)
    for count in range(1, len(chunks) + 1):
        permits.give()
        so_far = ("agent", "".join(chunks[:count]))
        eventually(lambda so_far=so_far: reader.look().running and reader.texts()[1:] == [so_far])  # type: ignore[misc]
        assert reader.shown[2].status == "streaming"
        assert home.read(talk).messages[-1] == reader.shown[2]
        assert home.read(talk).running
    permits.give()
    assert settled(home.service, USER, talk)[-1].status == "complete"


@given(st.lists(ANY_TEXT, min_size=1, max_size=8), st.data())
def test_reading_in_pieces_and_reading_at_the_end_give_the_same_text_to_the_byte(
    home: Home, chunks: list[str], data: st.DataObject
) -> None:
    talk, permits = home.talk(), Permits()
    home.puppet.play(talk, *[act for chunk in chunks for act in (permits.wait, chunk)])
    home.say(talk, "go")
    reader, grown = Reader(home, talk), b""
    for _ in chunks:
        permits.give()
        if data.draw(st.booleans()):
            reader.look()
            if 2 in reader.shown:
                seen = reader.shown[2].content.encode()
                assert seen.startswith(grown)
                grown = seen
    final = settled(home.service, USER, talk)[-1].content
    reader.look_until_done()
    assert reader.shown[2].content.encode() == final.encode() == "".join(chunks).encode()


@given(st.lists(st.tuples(ANY_TEXT, st.lists(ANY_TEXT, min_size=1, max_size=5)), min_size=1, max_size=3))
def test_the_pieces_of_a_stream_join_to_the_final_text(home: Home, turns: list[tuple[str, list[str]]]) -> None:
    talk = home.talk()
    for question, chunks in turns:
        home.puppet.play(talk, *chunks)
        home.say(talk, question)
        texts: dict[int, str] = {}
        for change in home.service.stream_messages(USER, talk):
            texts[change.message.seq] = ("" if change.reset else texts.get(change.message.seq, "")) + change.text
            assert texts[change.message.seq] == change.message.content
        final = everything(home.service, USER, talk)
        assert texts == {m.seq: m.content for m in final}


@given(st.lists(ANY_TEXT, min_size=1, max_size=6))
def test_a_broken_stream_continues_from_its_last_cursor_without_loss_or_repetition(
    home: Home, chunks: list[str]
) -> None:
    talk, permits = home.talk(), Permits()
    home.puppet.play(talk, *[act for chunk in chunks for act in (permits.wait, chunk)], permits.wait)
    home.say(talk, "go")
    cursor: str | None = None
    texts: dict[int, str] = {}
    for count in range(1, len(chunks) + 2):
        permits.give()
        for change in home.service.stream_messages(USER, talk, after=cursor):
            texts[change.message.seq] = ("" if change.reset else texts.get(change.message.seq, "")) + change.text
            cursor = change.cursor
            if change.message.content == "".join(chunks[:count]) and change.message.sender == "agent":
                break
        assert texts == {1: "go", 2: "".join(chunks[:count])}


@given(st.lists(ANY_TEXT, min_size=2, max_size=5))
def test_a_stream_broken_after_any_change_loses_nothing(home: Home, questions: list[str]) -> None:
    talk = home.talk()
    for question in questions:
        home.say(talk, question)
        settled(home.service, USER, talk)
    cursor: str | None = None
    shown: list[roost.Message] = []
    while (change := next(home.service.stream_messages(USER, talk, after=cursor), None)) is not None:
        shown.append(change.message)
        cursor = change.cursor
    assert tuple(shown) == everything(home.service, USER, talk)


@given(st.integers(1, 30), st.integers(1, 12))
def test_paging_backwards_covers_everything_once(home: Home, count: int, limit: int) -> None:
    talk = home.talk(busy="queue")
    for number in range(count):
        home.say(talk, f"message {number}")
    whole = settled(home.service, USER, talk)
    page = home.read(talk, limit=limit)
    pages = [page.messages]
    while page.more_before:
        page = home.service.get_messages(USER, talk, before=page.messages[0].seq, limit=limit)
        pages.insert(0, page.messages)
    assert all(len(p) == limit for p in pages[1:])
    assert sum(pages, ()) == whole
    assert [m.seq for m in whole] == list(range(1, len(whole) + 1))


@given(st.integers(2, 20), st.integers(1, 12), st.integers(1, 50))
def test_from_the_cursor_of_an_older_page_all_that_comes_after_it_follows(
    home: Home, count: int, limit: int, before: int
) -> None:
    talk = home.talk(busy="queue")
    for number in range(count):
        home.say(talk, f"message {number}")
    settled(home.service, USER, talk)
    older = home.service.get_messages(USER, talk, before=before, limit=limit)
    home.say(talk, "one more")
    whole = settled(home.service, USER, talk)
    page = older
    following: list[roost.Message] = []
    while True:
        page = home.service.get_messages(USER, talk, after=page.cursor, limit=limit)
        following += page.messages
        if not page.more_after:
            break
    passed = older.messages[-1].seq if older.messages else 0
    assert tuple(following) == whole[passed:]


@given(st.integers(1, 30), st.integers(1, 7))
def test_paging_forwards_from_the_start_covers_everything_once(home: Home, count: int, limit: int) -> None:
    talk = home.talk(busy="queue")
    reader = Reader(home, talk, limit)
    assert reader.look().messages == ()
    for number in range(count):
        home.say(talk, f"message {number}")
    whole = settled(home.service, USER, talk)
    reader.look_until_done()
    assert tuple(reader.shown.values()) == whole


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))
def test_paging_forwards_while_more_is_said_shows_everything_once(
    home: Home, count: int, limit: int, looks: int
) -> None:
    talk = home.talk(busy="queue")
    reader = Reader(home, talk, limit)
    assert reader.look().messages == ()
    for number in range(count):
        home.say(talk, f"message {number}")
        settled(home.service, USER, talk)
    for number in range(looks):
        reader.look()
        home.say(talk, f"meanwhile {number}")
        settled(home.service, USER, talk)
    reader.look_until_done()
    assert tuple(reader.shown.values()) == everything(home.service, USER, talk)
