"""M5: who does what when."""

from __future__ import annotations

from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Bounds,
    Declined,
    Ended,
    EntryId,
    Failed,
    FloorRule,
    Invited,
    Kicked,
    Left,
    Passed,
    Said,
    Started,
)
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.stamps import Stamp
from roost.core.meetings.participants.decisions import GRACE, due, due_at, may, obstacle
from roost.core.meetings.view.view import Phase
from tests.core.meetings.cast import ADA, BEN, CAL, DEADLINE, HOST, MEETING, call
from tests.core.meetings.people import Person, Room, running


def called(*required: str, optional: tuple[str, ...] = ()) -> Room:
    room = Room(HOST, *required, *optional)
    room.post(HOST, call(*required, optional=optional))
    return room


def test_nothing_is_due_while_answers_are_awaited_and_there_is_time() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    assert due(room.view, HOST, room.now) is None
    assert due_at(room.view, HOST) == DEADLINE


def test_the_creator_starts_as_soon_as_those_required_have_come() -> None:
    room = called(ADA, optional=(BEN,))
    room.post(ADA, Accepted())
    assert due(room.view, HOST, room.now) == Started()
    assert due(room.view, ADA, room.now) is None
    assert due(room.view, BEN, room.now) is None


def test_a_meeting_of_optional_ones_starts_at_once() -> None:
    assert due(called(optional=(ADA,)).view, HOST, 0) == Started()


def test_a_required_one_that_declines_fails_it_at_once_with_the_reason() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Declined("ill"))
    assert due(room.view, HOST, room.now) == Failed("agent:ann/ada has declined: ill")
    room.post(BEN, Accepted())
    assert due(room.view, BEN, room.now) is None


def test_an_optional_one_that_declines_does_not() -> None:
    room = called(ADA, optional=(BEN,))
    room.post(BEN, Declined())
    room.post(ADA, Accepted())
    assert obstacle(room.view) is None
    assert due(room.view, HOST, room.now) == Started()


def test_a_decline_that_came_before_anyone_looked_counts() -> None:
    host, ada = Person(HOST), Person(ADA)
    call_ = host.write(call(ADA))
    ada.take(call_)
    declined = ada.write(Declined())
    ben = Person(BEN)
    ben.take(declined)  # before the call itself
    assert due(ben.view, BEN, DEADLINE) is None
    host.take(declined)
    assert due(host.view, HOST, host.now) == Failed("agent:ann/ada has declined")
    ben.take(call_)
    assert obstacle(ben.view) == "agent:ann/ada has declined"


def test_past_the_deadline_it_fails_and_says_who_did_not_answer() -> None:
    room = called(ADA, BEN, CAL)
    room.post(BEN, Accepted())
    late = Failed("agent:ann/ada, agent:ann/cal did not answer in time")
    assert due(room.view, HOST, DEADLINE - 1) is None
    assert due(room.view, HOST, DEADLINE) == late
    assert due(room.view, BEN, DEADLINE + GRACE - 1) is None
    assert due(room.view, BEN, DEADLINE + GRACE) == late
    assert due(room.view, ADA, DEADLINE + 10 * GRACE) is None


def test_should_the_creator_be_lost_the_others_decide_one_after_the_other() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    room.post(BEN, Accepted())
    assert [due_at(room.view, who) for who in (HOST, ADA, BEN)] == [0, DEADLINE + GRACE, DEADLINE + 2 * GRACE]
    assert due(room.view, ADA, DEADLINE + GRACE) == Started()
    room.post(ADA, Started(), at=DEADLINE + GRACE)
    assert room.view.phase is Phase.RUNNING


def test_if_the_creator_leaves_before_the_start_the_meeting_fails() -> None:
    room = called(ADA)
    room.post(ADA, Accepted())
    room.post(HOST, Left())
    why = Failed("agent:ann/host, who called the meeting, has left")
    assert due(room.view, ADA, room.now) == why
    room.post(ADA, why)
    assert room.view.phase is Phase.FAILED


def test_one_required_who_leaves_before_the_start_is_an_obstacle_and_one_kicked_is_none() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    room.post(ADA, Left())
    assert due(room.view, HOST, room.now) == Failed("agent:ann/ada has left")
    room.post(HOST, Invited(ADA))
    room.post(HOST, Kicked(BEN))
    assert due(room.view, HOST, room.now) == Started()


def test_the_last_participant_ends_the_meeting_unless_others_may_still_join() -> None:
    room = running(ADA, optional=(BEN,))
    assert due(room.view, HOST, room.now) is None
    room.post(ADA, Left())
    assert due(room.view, HOST, room.now) is None
    room.post(HOST, Kicked(BEN))
    assert due(room.view, HOST, room.now) == Ended()


def test_a_participant_that_waits_for_the_first_to_join_keeps_waiting() -> None:
    for optional in ((ADA,), ()):
        room = called(optional=optional)
        room.post(HOST, Started())
        assert due(room.view, HOST, room.now) is None


def test_two_who_leave_at_once_do_not_leave_the_meeting_open() -> None:
    room = running(ADA)
    gone = [room[who].write(Left()) for who in (HOST, ADA)]
    room.tell(*gone)
    [last] = room.view.present
    assert due(room.view, last, room.now) == Ended()
    room.post(last, Ended())
    assert room.view.phase is Phase.ENDED


def test_a_meeting_in_which_no_more_can_be_said_is_ended() -> None:
    room = running(ADA, bounds=Bounds(words=1))
    room.says(ADA)
    assert due(room.view, HOST, room.now) == Ended()
    assert due(room.view, ADA, room.now) is None
    assert due(room.view, ADA, room.now + GRACE) == Ended()


def test_a_meeting_in_which_all_pass_is_ended() -> None:
    room = running(ADA, rule=FloorRule.ROUND_ROBIN, bounds=Bounds(words=1))
    for who in (HOST, ADA, HOST):
        assert due(room.view, HOST, room.now) is None
        room.post(who, Passed(who))
    assert due(room.view, HOST, room.now) == Ended()


def test_a_silent_speaker_is_skipped() -> None:
    room = running(ADA, BEN, rule=FloorRule.ROUND_ROBIN, bounds=Bounds(turn=1_000))
    room.says(HOST)
    since = room.view.floor.since
    assert due(room.view, HOST, since + 999) is None
    assert due(room.view, HOST, since + 1_000) == Passed(ADA)
    assert due(room.view, ADA, since + 99_000) is None
    assert due_at(room.view, BEN) == since + 1_000 + GRACE


def test_when_the_chair_keeps_silent_the_next_one_waits_no_longer_than_the_chair_would() -> None:
    room = running(ADA, BEN, rule=FloorRule.ROUND_ROBIN, bounds=Bounds(turn=1_000))
    since = room.view.floor.since
    assert [due_at(room.view, who) for who in (HOST, ADA, BEN)] == [None, since + 1_000, since + 1_000 + GRACE]


def test_without_a_turn_timeout_no_speaker_is_skipped() -> None:
    room = running(ADA, rule=FloorRule.ROUND_ROBIN, bounds=Bounds(turn=0))
    assert due_at(room.view, ADA) is None


def test_nothing_is_due_when_it_is_over() -> None:
    room = running(ADA)
    room.post(HOST, Ended())
    assert due_at(room.view, HOST) is None
    assert due_at(Person(HOST).view, HOST) is None


def test_what_is_due_is_lawful() -> None:
    room = called(ADA)
    room.post(ADA, Accepted())
    body = due(room.view, HOST, room.now)
    assert body is not None
    _, _, entry = room[HOST].log.written(room[HOST].clock, body, room.now)
    assert may(room.view, entry) is None


def trial(room: Room, who: str, body: Body) -> str | None:
    _, _, entry = room[who].log.written(room[who].clock, body, room.now)
    return may(room.view, entry)


def test_may_says_what_every_view_would_say() -> None:
    room = running(ADA, rule=FloorRule.ROUND_ROBIN)
    assert trial(room, HOST, Said("hi")) is None
    assert trial(room, ADA, Said("hi")) == room.says(ADA, "hi") == f"it is the turn of {HOST}: wait for yours"
    assert trial(room, HOST, Ended()) is None


def test_may_refuses_what_was_not_written_after_this_view() -> None:
    room = running(ADA)
    view = room.view
    entry = room.post(ADA, Said("hi"))
    assert may(view, entry) is None
    assert "is not the next" in str(may(room.view, entry))
    blind = Entry(MEETING, ADA, 3, Stamp(room.now), {HOST: 1}, Said("hi"))
    assert "without having seen" in str(may(room.view, blind))
    assert blind.id == EntryId(ADA, 3)
