"""M4: what reaches back, and that a view that grows is the view of the whole."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.games.games import Games
from roost.core.meetings.log.bodies import Accepted, Body, Ended, Invited, Joined, Kicked, Left, Said, Started
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.log import Log
from roost.core.meetings.view import rules
from roost.core.meetings.view.fold import LogReader, fold
from roost.core.meetings.view.trails import Trail
from roost.core.meetings.view.view import ParticipantStatus, Phase, View
from tests.core.meetings.cast import ADA, BEN, CAL, HOST, MEETING, NOON, call
from tests.core.meetings.people import Person, Room, fold_of, refusal, running, said, without


def test_an_entry_from_the_far_future_keeps_the_order_and_leaves_the_clocks_of_others_alone() -> None:
    host, ada, ben = Person(HOST), Person(ADA), Person(BEN)
    host.write(call(ADA, BEN))
    ada.meet(host)
    ben.meet(host)
    ada.now = NOON + 1_000 * 365 * 86_400_000
    ada.write(Accepted())
    ben.write(Accepted())
    host.meet(ada)
    host.meet(ben)
    host.write(Started())
    host.write(Said("one"))
    ada.meet(host)
    ada.now = NOON + 1
    ada.write(Said("two"))
    host.meet(ada)
    last = host.write(Said("three"))
    assert said(host.view) == [(HOST, "one"), (ADA, "two"), (HOST, "three")]
    assert last.at.ms <= NOON + 1


def apart(room: Room, who: str, *written: Body, at: int | None = None) -> list[Entry]:
    """Written by one who hears nothing meanwhile, and told to nobody yet."""
    room[who].now = room.now if at is None else at
    return [room[who].write(body) for body in written]


def test_what_the_kicker_had_not_seen_of_the_kicked_is_void_though_it_was_said_before() -> None:
    room = running(ADA, BEN)
    room.says(ADA, "seen")
    unseen = apart(room, ADA, Said("unseen"))
    room.post(HOST, Kicked(ADA))
    room.post(BEN, Said("good"))
    room.tell(*unseen)
    assert said(room.view) == [(ADA, "seen"), (BEN, "good")]
    assert "had not seen it when it kicked agent:ann/ada" in str(refusal(room.view, unseen[0]))


def test_a_kick_that_was_void_stays_void_when_another_reaches_back() -> None:
    room = running(ADA, BEN, CAL)
    unseen = apart(room, ADA, Said("unseen"))
    vain = room.post(BEN, Kicked(CAL))
    room.post(HOST, Kicked(ADA))
    room.tell(*unseen)
    assert "only agent:ann/host may kick" in str(refusal(room.view, vain))
    assert room.view.participants[CAL].status is ParticipantStatus.IN


def test_of_others_it_stays() -> None:
    room = running(ADA, BEN)
    unseen = apart(room, BEN, Said("unseen"))
    room.post(HOST, Kicked(ADA))
    room.tell(*unseen)
    assert said(room.view) == [(BEN, "unseen")]


def test_what_followed_from_a_void_entry_is_void_too() -> None:
    room = running(ADA)
    room.people[CAL] = Person(CAL)
    room[CAL].meet(room[HOST])
    asked = apart(room, ADA, Invited(CAL))
    room[CAL].take(*asked)
    joined = apart(room, CAL, Joined(), Said("hi"))
    room.post(HOST, Kicked(ADA))
    room.tell(*asked, *joined)
    assert CAL not in room.view.participants
    assert said(room.view) == []
    assert "was not invited" in str(refusal(room.view, joined[0]))


def test_a_kicked_participant_that_was_invited_again_is_heard() -> None:
    room = running(ADA, BEN)
    unseen = apart(room, ADA, Said("unseen"))
    room.post(HOST, Kicked(ADA))
    room.post(HOST, Invited(ADA))
    room.tell(*unseen)
    room.post(ADA, Accepted())
    room.says(ADA, "heard")
    assert said(room.view) == [(ADA, "heard")]


def test_entries_that_the_ending_participant_had_not_seen_are_void() -> None:
    room = running(ADA, BEN)
    room.says(ADA, "seen")
    unseen = [*apart(room, ADA, Said("unseen")), *apart(room, BEN, Left("unseen"))]
    before = room[HOST].view
    end = room.post(HOST, Ended())
    room.tell(*unseen)
    assert said(room.view) == [(ADA, "seen")]
    assert room.view.participants == before.participants
    assert all("ended the meeting" in str(refusal(room.view, entry)) for entry in unseen)
    assert room[HOST].log.order[-1].entry == end


def test_an_end_that_was_not_known_of_a_kick_undoes_it() -> None:
    room = running(ADA, BEN)
    room.post(HOST, Left())
    kick = apart(room, ADA, Kicked(BEN))
    room[HOST].now = room.now + 50
    back = apart(room, HOST, Joined(), Ended(), at=room.now + 50)
    room.tell(*kick, *back)
    view = room.view
    assert view.phase is Phase.ENDED
    assert view.participants[BEN].status is ParticipantStatus.IN
    assert "ended the meeting" in str(refusal(view, kick[0]))


def test_a_kick_by_a_kicked_participant_is_void_with_its_effects() -> None:
    room = running(ADA, BEN, CAL)
    room.post(HOST, Left())
    room.says(CAL, "seen")
    words = apart(room, CAL, Said("unseen by ada"))
    kick = apart(room, ADA, Kicked(CAL))
    back = apart(room, HOST, Joined(), Kicked(ADA), at=room.now + 50)
    room.tell(*words, *kick, *back)
    view = room.view
    assert view.participants[ADA].status is ParticipantStatus.KICKED
    assert view.participants[CAL].status is ParticipantStatus.IN
    assert said(view) == [(CAL, "seen"), (CAL, "unseen by ada")]


def test_of_two_ends_the_first_in_order_counts() -> None:
    room = running(ADA)
    room.post(HOST, Left())
    ends = [*apart(room, ADA, Ended("second"), at=room.now + 9), *apart(room, HOST, Joined(), Ended("first"))]
    room.tell(*ends)
    assert room.view.minutes == "first"
    assert said(room.view) == []


def test_an_end_is_void_if_only_what_its_author_did_not_know_would_make_it_lawful() -> None:
    """Ada may end the meeting only when the host has left, and it has, but she does not know."""
    room = running(ADA, BEN)
    gone = apart(room, HOST, Left())
    end = apart(room, ADA, Ended("mine"), at=room.now + 9)
    room.tell(*gone, *end)
    assert room.view.phase is Phase.RUNNING
    assert room.view.chair == ADA
    assert "only agent:ann/host may end" in str(refusal(room.view, end[0]))


def test_an_end_by_a_kicked_participant_is_void() -> None:
    room = running(ADA, BEN)
    room.post(HOST, Left())
    back = apart(room, HOST, Joined(), Kicked(ADA))
    end = apart(room, ADA, Ended("mine"), at=room.now + 9)
    room.tell(*end, *back)
    assert room.view.phase is Phase.RUNNING
    assert "when it kicked agent:ann/ada" in str(refusal(room.view, end[0]))


def test_a_kick_stands_though_it_voids_what_made_it_lawful() -> None:
    """Ada kicks Ben without knowing that he has come back, and his coming back is void by that very kick."""
    room = running(ADA, BEN)
    room.post(HOST, Left())
    room.post(BEN, Left())
    back = apart(room, BEN, Joined(), Said("again"))
    kick = apart(room, ADA, Kicked(BEN), at=room.now + 9)
    room.tell(*back, *kick)
    assert room.view.participants[BEN].status is ParticipantStatus.KICKED
    assert said(room.view) == []


def test_an_end_restores_the_view_of_its_author_whatever_others_took_for_lawful_meanwhile() -> None:
    """In Ada's view her kick of Ben is void, since he has left; by his return, which she never heard of, it is not."""
    room = running(ADA, BEN, CAL)
    room.post(HOST, Left())
    room.post(BEN, Left("bored"))
    back = apart(room, BEN, Joined())
    mine = apart(room, ADA, Kicked(BEN), at=room.now + 9)
    view = room[ADA].view
    mine += apart(room, ADA, Ended(), at=room.now + 9)
    room.tell(*back, *mine)
    assert room.view.participants == view.participants
    assert room.view.participants[BEN].status is ParticipantStatus.LEFT


def orders(entries: Sequence[Entry], seed: int) -> list[Entry]:
    shuffled = list(entries)
    random.Random(seed).shuffle(shuffled)
    return shuffled


@given(st.integers(0, 2**32))
def test_reading_as_it_grows_gives_what_reading_the_whole_gives(seed: int) -> None:
    room = running(ADA, BEN)
    unseen = [*apart(room, ADA, Said("a1"), Said("a2"), Left()), *apart(room, BEN, Said("b1"))]
    room.post(HOST, Said("h"))
    room.post(HOST, Kicked(ADA))
    room.tell(*unseen[:2], unseen[3])
    room.post(BEN, Said("b2"))
    room.post(HOST, Ended())
    room.tell(*unseen)
    whole = room[HOST].log
    log, reader = Log(MEETING, HOST), LogReader()
    for entry in orders([*whole, *whole], seed):
        log = log.added(entry)
        assert reader.read(log) == fold(log)
    assert reader.read(log) == room.view


def test_a_reader_of_a_log_that_was_put_right_forgets_what_was_wrong() -> None:
    room = running(ADA)
    first = room.post(ADA, Said("z"))
    room.post(HOST, Said("after"))
    reader = LogReader()
    reader.read(room[HOST].log)
    rival = Entry(MEETING, ADA, first.number, first.at, first.seen, Said("a"))
    healed = room[HOST].log.added(rival)
    assert said(reader.read(healed)) == [(ADA, "a"), (HOST, "after")]
    room.post(HOST, Ended())
    assert said(reader.read(room[HOST].log)) == [(ADA, "z"), (HOST, "after")]
    healed = room[HOST].log.added(rival)
    assert said(reader.read(healed)) == [(ADA, "a"), (HOST, "after")]
    assert reader.read(healed) == fold(healed)


def test_thousands_of_entries_are_cheap_one_by_one_and_late_ones_cost_little() -> None:
    host, reader = Person(HOST), LogReader()
    for body in (call(), Started()):
        host.write(body)
    log, clock = host.log, host.clock
    began = time.perf_counter()
    for number in range(3_000):
        log, clock, _ = log.written(clock, Said(str(number)), NOON + number)
        reader.read(log)
    taken = time.perf_counter() - began
    began = time.perf_counter()
    whole = fold(Log(MEETING, HOST).added(*log))
    from_scratch = time.perf_counter() - began
    assert reader.read(log) == whole
    assert [word.text for word in whole.words] == [str(number) for number in range(3_000)]
    assert taken < 20 * from_scratch + 1, f"{taken:.2f} s one by one, {from_scratch:.2f} s at once"


def test_an_insertion_folds_again_only_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    room = running(ADA)
    for number in range(500):
        room.post(HOST, Said(str(number)))
    late = apart(room, ADA, Said("late"))
    room.post(HOST, Said("last"))
    reader = LogReader()
    reader.read(room[HOST].log)
    folded: list[Entry] = []
    after = rules.after

    def counted(view: View, entry: Entry, games: Games) -> View:
        folded.append(entry)
        return after(view, entry, games)

    monkeypatch.setattr(rules, "after", counted)
    room[HOST].take(*late)
    assert said(reader.read(room[HOST].log))[-2:] == [(ADA, "late"), (HOST, "last")]
    assert len(folded) == 2


def test_a_reader_keeps_a_view_for_few_places_of_many() -> None:
    host, reader = Person(HOST), LogReader()
    host.write(call())
    for _ in range(500):
        host.write(Left())
        reader.read(host.log)
    assert len(reader._marks) < 50


def test_a_long_trail_is_compared_shown_and_dropped_without_trouble() -> None:
    one, other = Trail[int](), Trail[int]()
    for number in range(100_000):
        one, other = one.added(number), other.added(number)
    assert one == other
    assert list(one) == list(range(100_000))
    assert len(one) == 100_000
    assert one.added(1) != other.added(2)
    assert one != other.added(1)
    assert one != list(one)
    assert Trail[int]().added(5).added(7) != Trail[int]().added(7)
    assert repr(Trail[int]().added(7)) == "Trail([7])"
    del one, other


def test_an_ended_meeting_is_what_the_ending_participant_had_seen() -> None:
    room = running(ADA, BEN)
    apart(room, ADA, Said("x"), Left())
    apart(room, BEN, Said("y"))
    seen = room[HOST].view
    room.post(HOST, Ended())
    ended = fold_of(room[HOST], room[ADA], room[BEN])
    changed = ("refused", "seen", "at", "phase", "over_at", "ended_by", "minutes")
    assert without(ended, *changed) == without(seen, *changed)
