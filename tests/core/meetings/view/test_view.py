"""M4, M5: who is there, how a meeting begins and how it ends."""

from __future__ import annotations

import pytest

from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Bounds,
    Declined,
    Ended,
    EntryId,
    Failed,
    Invited,
    Joined,
    Kicked,
    Left,
    Raised,
    Said,
    Started,
)
from roost.core.meetings.view.view import ParticipantStatus, Phase, View
from tests.core.meetings.cast import ADA, ANN, BEN, CAL, DAN, DEADLINE, HOST, call
from tests.core.meetings.people import Person, Room, refusal, running, said


def statuses(view: View) -> dict[str, str]:
    return {address: str(one.status) for address, one in view.participants.items()}


def called(*required: str, optional: tuple[str, ...] = ()) -> Room:
    room = Room(HOST, *required, *optional)
    room.post(HOST, call(*required, optional=optional))
    return room


def test_the_creator_is_in_at_once_and_those_invited_are_not() -> None:
    view = called(ADA, optional=(BEN,)).view
    assert statuses(view) == {HOST: "in", ADA: "invited", BEN: "invited"}
    assert view.phase is Phase.CALLING
    assert view.present == (HOST,)
    assert (view.chair, view.creator) == (HOST, HOST)


def test_the_creator_is_not_awaited_and_neither_are_optional_ones() -> None:
    room = called(ADA, optional=(BEN,))
    before = room.view
    room.post(ADA, Accepted())
    assert (before.awaited, room.view.awaited) == ((ADA,), ())


def test_an_empty_log_is_a_meeting_without_a_call() -> None:
    view = Person(ADA).view
    assert (view.call, view.present, view.chair, view.moderator) == (None, (), None, None)
    assert not view.is_over


def test_answers_change_who_is_there() -> None:
    room = called(ADA, BEN, optional=(CAL,))
    room.post(ADA, Accepted())
    room.post(BEN, Declined("ill"))
    assert statuses(room.view) == {HOST: "in", ADA: "in", BEN: "declined", CAL: "invited"}
    assert room.view.participants[BEN].reason == "ill"


def test_the_meeting_starts_when_those_required_have_come() -> None:
    room = called(ADA, optional=(BEN,))
    early = room.post(HOST, Started())
    room.post(ADA, Accepted())
    started = room.post(HOST, Started())
    assert "agent:ann/ada must join" in str(refusal(room.view, early))
    assert room.view.phase is Phase.RUNNING
    assert (room.view.decided_by, room.view.began_at) == (started.id, started.at.ms)


@pytest.mark.parametrize("second", [Started(), Failed("no")])
def test_one_entry_alone_decides_how_it_begins(second: Body) -> None:
    room = running(ADA)
    entry = room.post(HOST, second)
    assert "decided already" in str(refusal(room.view, entry))
    assert room.view.phase is Phase.RUNNING


def test_of_two_deciders_past_the_deadline_the_first_in_order_counts() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    room[ADA].now = DEADLINE + 7
    room[HOST].now = DEADLINE + 5
    failed = [room[ADA].write(Failed("by ada")), room[HOST].write(Failed("by host"))]
    room.tell(*failed)
    assert room.view.phase is Phase.FAILED
    assert room.view.reason == "by host"
    assert "has failed" in str(refusal(room.view, failed[0]))


def test_before_the_deadline_only_the_creator_decides() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    early = room.post(ADA, Failed("bored"), at=DEADLINE - 1)
    assert "until the deadline agent:ann/host decides" in str(refusal(room.view, early))
    room.post(ADA, Failed("ben did not answer"), at=DEADLINE)
    assert room.view.phase is Phase.FAILED
    assert room.view.over_at == DEADLINE


def test_the_creator_may_call_it_off_while_it_is_being_called() -> None:
    room = called(ADA)
    room.post(HOST, Failed("the kitchen is on fire"))
    assert (room.view.phase, room.view.reason) == (Phase.FAILED, "the kitchen is on fire")
    assert room.view.is_over


def test_who_has_not_come_decides_nothing() -> None:
    room = called(ADA)
    entry = room.post(ADA, Failed("no"), at=DEADLINE + 1)
    assert "is not in the meeting" in str(refusal(room.view, entry))


def test_a_withdrawal_that_the_starter_could_not_know_of_does_not_undo_the_start() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    room.post(BEN, Accepted())
    gone = room[BEN].write(Left("sorry"))
    started = room.post(HOST, Started())
    room.post(HOST, Said("welcome"))
    room.tell(gone)
    assert room.view.phase is Phase.RUNNING
    assert [placed.entry for placed in room[HOST].log.order][-3:] == [gone, started, room[HOST].log.order[-1].entry]
    assert statuses(room.view)[BEN] == "left"
    assert said(room.view) == [(HOST, "welcome")]


def test_a_start_by_somebody_who_knew_that_one_required_had_left_is_refused() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    room.post(BEN, Accepted())
    room.post(BEN, Left("sorry"))
    started = room.post(HOST, Started())
    assert "agent:ann/ben must join before the start" in str(refusal(room.view, started))
    assert room.view.phase is Phase.CALLING


def test_an_acceptance_that_the_starter_could_not_know_of_does_not_make_its_start_lawful_afterwards() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    late = room[BEN].write(Accepted())
    gone = room[BEN].write(Left())
    early = room.post(HOST, Started())
    room.tell(late, gone)
    assert "agent:ann/ben must join" in str(refusal(room.view, early))


def test_a_required_participant_unknown_to_the_starter_does_not_block() -> None:
    room = Room(HOST, ADA, BEN)
    room.post(HOST, call(ADA))
    room.post(ADA, Accepted())
    invited = room[HOST].write(Invited(BEN, required=True))
    room[ADA].now = DEADLINE + 1
    started = room[ADA].write(Started())
    room.tell(invited, started)
    assert room.view.phase is Phase.RUNNING
    assert refusal(room.view, started) is None


def test_one_required_who_was_kicked_is_not_awaited() -> None:
    room = called(ADA, BEN)
    room.post(ADA, Accepted())
    room.post(HOST, Kicked(BEN))
    room.post(HOST, Started())
    assert room.view.phase is Phase.RUNNING


def test_an_acceptance_that_comes_after_the_start_counts() -> None:
    room = called(optional=(ADA,))
    room.post(HOST, Started())
    room.post(ADA, Accepted())
    assert room.says(ADA) is None


def test_late_ones_join_and_hear_everything_from_the_beginning() -> None:
    room = running(ADA)
    room.says(HOST, "one")
    room.post(ADA, Invited(DAN))
    dan = Person(DAN)
    dan.meet(room[HOST])
    room.people[DAN] = dan
    room.post(DAN, Joined())
    assert room.says(DAN, "two") is None
    assert said(room.view) == [(HOST, "one"), (DAN, "two")]
    assert dan.view == room[HOST].view


def test_who_left_may_come_back_and_who_declined_may_change_its_mind() -> None:
    room = running(ADA, optional=(BEN,))
    room.people[BEN] = Person(BEN)
    room[BEN].meet(room[HOST])
    room.post(ADA, Left("lunch"))
    room.post(BEN, Declined())
    assert statuses(room.view) == {HOST: "in", ADA: "left", BEN: "declined"}
    room.post(ADA, Joined())
    room.post(BEN, Joined())
    assert room.view.present == (HOST, ADA, BEN)
    assert room.view.participants[ADA].reason == ""


def test_only_open_meetings_can_be_joined_without_an_invitation() -> None:
    for is_open in (False, True):
        room = Room(HOST, ADA)
        room.post(HOST, call(open=is_open))
        entry = room.post(ADA, Joined())
        assert room.view.is_in(ADA) is is_open
        assert is_open or "was not invited" in str(refusal(room.view, entry))


def test_the_number_of_participants_is_limited() -> None:
    room = Room(HOST, ADA, BEN)
    room.post(HOST, call(ADA, bounds=Bounds(participants=2), open=True))
    for entry in (room.post(BEN, Joined()), room.post(HOST, Invited(CAL))):
        assert "full, with 2" in str(refusal(room.view, entry))


def test_what_is_said_before_the_start_and_by_strangers_is_void() -> None:
    room = called(ADA)
    early = room.post(HOST, Said("psst"))
    room.post(ADA, Accepted())
    room.post(HOST, Started())
    room.people[DAN] = Person(DAN)
    room[DAN].meet(room[HOST])
    stranger = room.post(DAN, Said("hello"))
    assert "has not begun" in str(refusal(room.view, early))
    assert "is not in the meeting" in str(refusal(room.view, stranger))
    assert said(room.view) == []


@pytest.mark.parametrize(
    ("who", "body", "says"),
    [
        (ADA, Accepted(), "join instead"),
        (ADA, Declined(), "may leave"),
        (ADA, Joined(), "is present already"),
        (ADA, Invited(BEN), "is in already"),
        (ADA, Invited(DAN, required=True), "as optional"),
        (HOST, Invited(DAN, required=True), "as optional"),
        (ADA, Kicked(BEN), "only agent:ann/host may kick"),
        (HOST, Kicked(HOST), "leave instead"),
        (HOST, Kicked(DAN), "neither present nor invited"),
        (ADA, Ended(), "only agent:ann/host may end"),
        (ADA, Raised(), "floor rule is free"),
    ],
)
def test_what_is_not_lawful_is_void_and_says_what_to_do(who: str, body: Body, says: str) -> None:
    room = running(ADA, BEN)
    before = room.view
    entry = room.post(who, body)
    assert says in str(refusal(room.view, entry))
    assert room.view.participants == before.participants
    assert room.view.phase is Phase.RUNNING


def test_who_was_kicked_says_no_more_and_comes_back_only_if_the_chair_invites_it() -> None:
    room = running(ADA, BEN)
    room.post(HOST, Kicked(ADA, "noise"))
    assert statuses(room.view)[ADA] == "kicked"
    assert "was kicked (noise): ask agent:ann/host for a new invitation" in str(room.says(ADA))
    assert "new invitation" in str(room.tries(ADA, Joined()))
    assert "only agent:ann/host may invite" in str(room.tries(BEN, Invited(ADA)))
    room.post(HOST, Invited(ADA))
    room.post(ADA, Accepted())
    assert room.says(ADA, "sorry") is None


def test_the_creator_cannot_be_kicked_by_a_later_chair() -> None:
    room = running(ADA, BEN)
    room.post(HOST, Left())
    assert room.view.chair == ADA
    room.post(HOST, Joined())
    assert room.view.chair == HOST
    room.post(HOST, Left())
    assert "cannot be kicked" in str(room.tries(ADA, Kicked(HOST)))
    room.post(ADA, Invited(HOST))
    assert "cannot be kicked" in str(room.tries(ADA, Kicked(HOST)))


def test_when_the_creator_has_left_the_next_one_has_the_chair() -> None:
    room = running(ADA, BEN)
    room.post(HOST, Left())
    room.post(ADA, Kicked(BEN))
    assert statuses(room.view)[BEN] == "kicked"
    room.post(ADA, Ended())
    assert room.view.phase is Phase.ENDED


def test_the_last_one_ends_the_meeting_instead_of_leaving() -> None:
    room = running(ADA)
    room.post(HOST, Left())
    entry = room.post(ADA, Left())
    assert "end the meeting" in str(refusal(room.view, entry))
    room.post(ADA, Ended())
    assert room.view.phase is Phase.ENDED


def test_an_ended_meeting_takes_no_more_words() -> None:
    room = running(ADA)
    room.says(ADA, "bye")
    end = room.post(HOST, Ended("We had soup."))
    late = [room.post(ADA, body) for body in (Said("wait"), Left(), Joined(), Ended())]
    view = room.view
    assert (view.phase, view.minutes, view.ended_by) == (Phase.ENDED, "We had soup.", EntryId(HOST, 3))
    assert view.over_at == end.at.ms
    assert said(view) == [(ADA, "bye")]
    assert all("call another one" in str(refusal(view, entry)) for entry in late)
    assert view.participants[ADA].status is ParticipantStatus.IN


def test_anyone_may_end_a_meeting_in_which_no_more_can_be_said() -> None:
    room = running(ADA, bounds=Bounds(words=1))
    room.says(HOST, "one")
    assert "end it" in str(room.says(ADA, "two"))
    room.post(ADA, Ended())
    assert room.view.phase is Phase.ENDED


def test_a_person_is_a_participant_like_any_other() -> None:
    room = running(ANN)
    assert room.says(ANN, "hello") is None
    assert said(room.view) == [(ANN, "hello")]
