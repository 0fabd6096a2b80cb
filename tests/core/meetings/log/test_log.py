"""M4: logs that are lost, doubled and reordered on the way come out the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.log.bodies import Accepted, Body, Called, EntryId, Moved, Said
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.log import Gap, Log, check_sender
from roost.core.meetings.log.stamps import HybridClock, Stamp
from roost.errors import Forbidden, Invalid
from tests.core.meetings.cast import ADA, BEN, HOST, MEETING, NOON, call

EMPTY = Log(MEETING, HOST)


def entry(author: str, number: int, body: Body | None = None, at: int = NOON, **seen: int) -> Entry:
    names = {f"agent:ann/{name}": count for name, count in seen.items()}
    return Entry(MEETING, author, number, Stamp(at + number), names, body or Said(f"{author} {number}"))


CALL = entry(HOST, 1, call(ADA, BEN))
HISTORY = [
    CALL,
    entry(HOST, 2),
    entry(ADA, 1, Accepted(), host=1),
    entry(BEN, 1, Accepted(), host=1, ada=1),
    entry(ADA, 2, host=2, ben=1),
    entry(BEN, 2, host=2, ada=2),
    entry(HOST, 3, ada=2, ben=2),
]
RIVALS = [
    entry(ADA, 2, Said("another"), host=2, ben=1),
    entry(ADA, 2, host=1),
    entry(BEN, 1, Said("no"), at=NOON - 99, host=1),
    entry(HOST, 3, Said("again"), at=NOON + 99),
]
"""Entries that bear the author and number of others."""
SOME = st.lists(st.sampled_from([*HISTORY, *RIVALS]), max_size=12)


@given(st.permutations(HISTORY))
def test_the_order_of_arrival_does_not_matter(arrived: list[Entry]) -> None:
    log = EMPTY
    for one in arrived:
        log = log.added(one)
    assert log == EMPTY.added(*HISTORY)
    assert [placed.entry for placed in log.order] == [placed.entry for placed in EMPTY.added(*HISTORY).order]
    assert log.vector == {HOST: 3, ADA: 2, BEN: 2}
    assert not log.waiting


@given(SOME, SOME, SOME)
def test_merging_is_commutative_associative_and_idempotent(x: list[Entry], y: list[Entry], z: list[Entry]) -> None:
    a, b, c = (EMPTY.added(*entries) for entries in (x, y, z))
    assert a.merged(b) == b.merged(a)
    assert a.merged(b).merged(c) == a.merged(b.merged(c))
    assert a.merged(a) is a
    assert a.merged(b).merged(b) == a.merged(b)


@given(SOME)
def test_nothing_is_lost_and_doubled_ones_change_nothing(entries: list[Entry]) -> None:
    log = EMPTY.added(*entries)
    assert {one.id for one in log} == {one.id for one in entries}
    assert log.size == len(list(log)) == len({one.id for one in entries})
    assert all(log.get(one.id) is not None for one in entries)
    assert log.added(*entries, *log) is log


@given(SOME)
def test_what_is_in_place_refers_to_nothing_that_is_not(entries: list[Entry]) -> None:
    log = EMPTY.added(*entries)
    before: set[EntryId] = set()
    for placed in log.order:
        one = placed.entry
        known = [EntryId(author, count) for author, count in one.seen.items()]
        assert before >= {EntryId(who.author, n) for who in known for n in range(1, who.number + 1)}
        assert one.number == 1 or EntryId(one.author, one.number - 1) in before
        before.add(one.id)
    assert {one.id for one in log} - before == set(log.waiting)


@given(SOME, SOME)
def test_after_two_answers_both_have_the_same(one: list[Entry], two: list[Entry]) -> None:
    a, b = EMPTY.added(*one), EMPTY.added(*two)
    for _ in range(3):  # Each may have of an author what the other has not, and not the same.
        a, b = a.added(*b.answer_to(a.digest())), b.added(*a.answer_to(b.digest()))
    assert a == b == EMPTY.added(*one, *two)
    assert not [one for one in a.answer_to(b.digest()) if one.id not in a.waiting]


@pytest.mark.parametrize("rivals", list(permutations([HISTORY[4], *RIVALS[:2]])))
def test_of_two_with_the_same_number_every_log_keeps_the_same(rivals: tuple[Entry, ...]) -> None:
    log = EMPTY.added(*HISTORY[:4])
    for rival in rivals:
        log = log.added(rival)
    assert log == EMPTY.added(*HISTORY[:4], *rivals[::-1])
    assert log.get(EntryId(ADA, 2)) == min([HISTORY[4], *RIVALS[:2]], key=lambda one: (one.at, repr(one.body)))


def test_an_earlier_time_wins_over_another_text() -> None:
    late, early = entry(HOST, 2, Said("a")), entry(HOST, 2, Said("z"), at=NOON - 5)
    assert EMPTY.added(CALL, late).added(early).get(EntryId(HOST, 2)) == early
    assert EMPTY.added(CALL, early).added(late).get(EntryId(HOST, 2)) == early


def test_numbers_that_only_look_alike_are_distinguished() -> None:
    head = EntryId(HOST, 1)
    one, other = entry(HOST, 2, Moved(head, {"cell": 1})), entry(HOST, 2, Moved(head, {"cell": True}))
    a, b = EMPTY.added(CALL, one), EMPTY.added(CALL, other)
    a, b = a.added(*b.answer_to(a.digest())), b.added(*a.answer_to(b.digest()))
    assert repr(a) == repr(b)


def test_what_waits_has_gaps_that_can_be_asked_for() -> None:
    log = EMPTY.added(CALL, entry(ADA, 4, host=3, ben=1))
    assert log.gaps() == (Gap(ADA, 1, 3), Gap(BEN, 1, 1), Gap(HOST, 2, 3))
    assert log.added(entry(ADA, 2, host=1)).gaps() == (Gap(ADA, 1, 1), Gap(ADA, 3, 3), Gap(BEN, 1, 1), Gap(HOST, 2, 3))
    assert EMPTY.added(*HISTORY).gaps() == ()


def test_missing_entries_are_listed_as_ranges() -> None:
    log = EMPTY.added(CALL, entry(ADA, 3, host=1))
    assert log.missing({HOST: 1, ADA: 2}) == (Gap(ADA, 1, 2),)
    assert log.missing({ADA: 1_000_000, BEN: 2}) == (Gap(ADA, 1, 2), Gap(ADA, 4, 1_000_000), Gap(BEN, 1, 2))
    assert log.missing({}) == ()


def test_a_decline_that_comes_before_the_call_waits_for_it() -> None:
    early = entry(ADA, 1, Accepted(), host=1)
    log = EMPTY.added(early)
    assert not log.order
    assert log.vector == {}
    assert [placed.entry for placed in log.added(CALL).order] == [CALL, early]


def test_an_answer_in_pieces_can_be_used_piece_by_piece() -> None:
    whole, log = EMPTY.added(*HISTORY), EMPTY
    for count in range(1, len(HISTORY) + 1):
        [one] = whole.answer_to(log.digest(), most=1)
        log = log.added(one)
        assert len(log.order) == count
    assert whole.answer_to(log.digest()) == ()


def test_a_late_participant_receives_the_whole_log() -> None:
    whole = EMPTY.added(*HISTORY)
    late = EMPTY.added(*whole.answer_to(EMPTY.digest()))
    assert late == whole


def test_no_entry_is_before_what_its_author_had_seen_whatever_its_stamp_says() -> None:
    backwards = [CALL, entry(HOST, 2, at=NOON - 500), entry(ADA, 1, Accepted(), at=NOON - 900, host=2)]
    log = EMPTY.added(*backwards[::-1])
    assert [placed.entry for placed in log.order] == backwards


def test_what_is_written_is_the_last_and_has_seen_all_before() -> None:
    log, clock, new = EMPTY.added(*HISTORY).written(HybridClock(ADA), Said("hi"), NOON - 10_000)
    assert log.order[-1].entry == new
    assert (new.number, new.seen, new.at) == (3, {HOST: 3, BEN: 2}, clock.stamp)
    assert log.missing({ADA: 3}) == ()


def test_what_cannot_be_read_cannot_be_written() -> None:
    with pytest.raises(Invalid, match="empty"):
        EMPTY.added(CALL).written(HybridClock(HOST), Said(""), NOON)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (replace(CALL, meeting="other"), "belongs to the meeting 'other'"),
        (entry(ADA, 1, call(BEN), host=1), "by the first entry of its creator"),
        (entry(HOST, 2, call(BEN)), "by the first entry of its creator"),
        (entry(HOST, 1, Said("hi")), "by the first entry of its creator"),
        (replace(CALL, seen={ADA: 1}), "can't have seen"),
        (entry(ADA, 1, Accepted()), "without having seen the call"),
        (entry(ADA, 1, Accepted(), ben=1), "without having seen the call"),
    ],
)
def test_what_can_never_be_of_this_log_is_refused(bad: Entry, says: str) -> None:
    log = EMPTY.added(CALL)
    with pytest.raises(Invalid, match=says):
        log.added(HISTORY[1], bad)


def test_logs_of_two_meetings_are_not_merged() -> None:
    with pytest.raises(Invalid, match="two meetings"):
        EMPTY.merged(Log("other", HOST))
    with pytest.raises(Invalid, match="two meetings"):
        EMPTY.merged(Log(MEETING, ADA))
    assert EMPTY.added(CALL).answer_to(Log("other", HOST).digest()) == ()


def test_entries_that_name_another_participant_as_author_are_refused() -> None:
    check_sender(HISTORY[4], ADA)
    check_sender(HISTORY[4], BEN, is_answer=True)
    with pytest.raises(Forbidden, match="not its own"):
        check_sender(HISTORY[4], BEN)


def test_a_later_call_cannot_take_the_place_of_the_first() -> None:
    forged = Entry(MEETING, BEN, 1, Stamp(0), {}, Called("Coup", NOON))
    with pytest.raises(Invalid):
        EMPTY.added(CALL).added(forged)
