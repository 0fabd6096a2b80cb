"""M6: whose turn it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Bounds,
    FloorRule,
    Granted,
    Invited,
    Joined,
    Kicked,
    Left,
    Passed,
    Raised,
    Said,
)
from roost.core.meetings.participants.attention import attention
from roost.core.meetings.view import floor
from tests.core.meetings.cast import ADA, BEN, CAL, DAN, HOST, call
from tests.core.meetings.people import Person, Room, running, said

BY_TURNS, BY_HAND = FloorRule.ROUND_ROBIN, FloorRule.RAISE_HAND
BY_MODERATOR, BY_MENTION = FloorRule.MODERATOR, FloorRule.MENTION


def test_no_participant_has_the_floor_before_the_start() -> None:
    room = Room(HOST, ADA)
    room.post(HOST, call(ADA, rule=BY_TURNS))
    assert room.speakers() == ()
    assert floor.holder(room.view) is None


def test_free_lets_everyone_speak_who_is_there() -> None:
    room = running(ADA, BEN)
    assert room.speakers() == (HOST, ADA, BEN)
    assert [room.says(who) for who in (BEN, BEN, HOST)] == [None, None, None]


def test_round_robin_goes_around_beginning_with_the_creator() -> None:
    room = running(ADA, BEN, rule=BY_TURNS)
    for who in (HOST, ADA, BEN, HOST, ADA):
        assert room.speakers() == (who,)
        assert room.says(who) is None
    assert room.says(HOST) == f"it is the turn of {BEN}: wait for yours"


def test_round_robin_follows_leaving_and_joining_participants() -> None:
    room = running(ADA, BEN, CAL, rule=BY_TURNS)
    room.says(HOST)
    room.post(ADA, Left())
    assert room.speakers() == (BEN,)
    room.post(HOST, Kicked(BEN))
    assert room.speakers() == (CAL,)
    room.says(CAL)
    room.says(HOST)
    room.post(ADA, Joined())
    assert room.speakers() == (ADA,)


def test_a_turn_is_passed_on_by_its_holder_and_by_the_chair_and_after_silence_by_anyone() -> None:
    room = running(ADA, BEN, CAL, rule=BY_TURNS, bounds=Bounds(turn=10_000))
    assert room.tries(HOST, Passed(HOST)) is None
    assert room.tries(HOST, Passed(ADA)) is None
    assert room.speakers() == (BEN,)
    since = room.view.floor.since
    assert "has the floor" in str(room.tries(CAL, Passed(BEN)))
    assert "not the turn of agent:ann/ada" in str(room.tries(CAL, Passed(ADA)))
    room.post(CAL, Passed(BEN), at=since + 9_999)
    assert room.speakers() == (BEN,)
    room.post(CAL, Passed(BEN), at=since + 10_000)
    assert room.speakers() == (CAL,)
    assert said(room.view) == []


def test_words_said_before_the_floor_moved_are_heard() -> None:
    room = running(ADA, BEN, rule=BY_TURNS)
    room.says(HOST)
    late = room[ADA].write(Said("late"))
    room.post(HOST, Passed(ADA))
    room.post(BEN, Said("next"))
    room.tell(late)
    assert said(room.view)[1:] == [(ADA, "late"), (BEN, "next")]


def test_hands_are_heard_in_the_order_in_which_they_were_raised_each_once() -> None:
    room = running(ADA, BEN, rule=BY_HAND)
    assert room.speakers() == ()
    assert "raise a hand" in str(room.says(HOST))
    room.post(BEN, Raised())
    room.post(ADA, Raised())
    assert room.view.floor.hands == (BEN, ADA)
    assert room.speakers() == (BEN,)
    assert "others come first" in str(room.says(ADA))
    assert room.says(BEN, hand=True) is None
    assert room.says(ADA) is None
    assert room.speakers() == (BEN,)
    assert room.says(BEN) is None
    assert room.speakers() == ()
    assert "raise a hand" in str(room.says(BEN))


def test_a_hand_is_raised_once_and_lowered_when_its_owner_leaves() -> None:
    room = running(ADA, BEN, rule=BY_HAND)
    room.post(ADA, Raised())
    assert "up already" in str(room.tries(ADA, Raised()))
    room.post(BEN, Raised())
    room.post(ADA, Left())
    assert room.speakers() == (BEN,)
    room.post(ADA, Joined())
    assert room.view.floor.hands == (BEN,)


def test_the_raised_hands_of_others_do_not_give_the_silent_more_time() -> None:
    room = running(ADA, BEN, rule=BY_HAND)
    room.post(ADA, Raised())
    since = room.view.floor.since
    room.post(BEN, Raised())
    assert room.view.floor.since == since == room.now - 1_000


def test_a_further_word_by_raised_hand_has_a_turn_of_its_own() -> None:
    room = running(ADA, BEN, rule=BY_HAND)
    room.post(ADA, Raised())
    room.says(ADA, hand=True)
    assert room.speakers() == (ADA,)
    assert room.view.floor.since == room.now


def test_a_kicked_participant_loses_hand_floor_and_mentions() -> None:
    for rule in (BY_HAND, BY_MODERATOR, BY_MENTION):
        room = running(ADA, BEN, rule=rule)
        room.post(ADA, Raised())
        room.post(HOST, Granted(ADA))
        room.says(HOST, to=(ADA,))
        room.post(HOST, Kicked(ADA))
        assert ADA not in room.speakers()
        room.post(HOST, Invited(ADA))
        room.post(ADA, Accepted())
        assert ADA not in room.speakers()


def test_a_mention_of_an_absent_participant_is_not_kept() -> None:
    room = running(ADA, optional=(CAL,), rule=BY_MENTION)
    room.people[CAL] = Person(CAL)
    room[CAL].meet(room[HOST])
    room.says(HOST, to=(CAL,))
    room.post(CAL, Accepted())
    assert room.speakers() == (HOST,)


def test_the_moderator_gives_the_floor_for_one_speech() -> None:
    room = running(ADA, BEN, rule=BY_MODERATOR)
    assert room.speakers() == (HOST,)
    assert f"{HOST} gives the floor" in str(room.says(ADA))
    room.post(ADA, Raised())
    assert "others come first" in str(room.says(ADA))
    assert "only agent:ann/host gives" in str(room.tries(BEN, Granted(BEN)))
    assert "is not present" in str(room.tries(HOST, Granted(DAN)))
    room.post(HOST, Granted(ADA))
    assert room.speakers() == (ADA, HOST)
    assert room.view.floor.hands == ()
    assert room.says(ADA) is None
    assert room.speakers() == (HOST,)
    assert room.says(HOST) is None


def test_the_call_names_the_moderator_and_the_chair_stands_in_for_it() -> None:
    room = running(ADA, BEN, rule=BY_MODERATOR, moderator=BEN)
    assert room.view.moderator == BEN
    room.post(BEN, Granted(ADA))
    room.post(BEN, Passed(ADA))
    assert room.speakers() == (BEN,)
    room.post(BEN, Left())
    assert room.speakers() == (HOST,)


def test_a_granted_floor_is_lost_by_going() -> None:
    room = running(ADA, BEN, rule=BY_MODERATOR)
    room.post(HOST, Granted(ADA))
    room.post(ADA, Left())
    room.post(ADA, Joined())
    assert room.speakers() == (HOST,)


def test_those_mentioned_speak_each_once_and_the_chair_always() -> None:
    room = running(ADA, BEN, CAL, rule=BY_MENTION)
    assert room.speakers() == (HOST,)
    assert "was not" in str(room.says(ADA))
    assert room.says(HOST, to=(BEN, ADA, DAN, BEN, HOST)) is None
    assert room.speakers() == (BEN, ADA, HOST)
    assert room.says(ADA, to=(CAL,)) is None
    assert room.speakers() == (BEN, CAL, HOST)
    assert "was not" in str(room.says(ADA))
    assert room.says(HOST) is None
    assert room.says(BEN) is None
    assert room.says(CAL) is None
    assert room.speakers() == (HOST,)


@pytest.mark.parametrize(
    ("rule", "body", "says"),
    [
        (BY_TURNS, Raised(), "floor rule is round_robin"),
        (BY_HAND, Granted(ADA), "floor rule is raise_hand"),
        (BY_MENTION, Passed(ADA), "not the turn"),
        (FloorRule.FREE, Passed(ADA), "not the turn"),
    ],
)
def test_what_a_rule_has_no_use_for_is_void(rule: FloorRule, body: Body, says: str) -> None:
    assert says in str(running(ADA, rule=rule).tries(HOST, body))


ACTS = st.sampled_from(["say", "mention", "raise", "grant", "pass", "leave", "join"])


@given(
    st.sampled_from(FloorRule),
    st.lists(st.tuples(st.integers(0, 3), ACTS, st.integers(0, 3)), max_size=25),
)
def test_only_the_participant_with_the_floor_may_speak(rule: FloorRule, acts: list[tuple[int, str, int]]) -> None:
    names = [HOST, ADA, BEN, CAL]
    room = running(*names[1:], rule=rule)
    for who, act, target in acts:
        author, other = names[who], names[target]
        bodies: dict[str, Body] = {
            "say": Said("x"),
            "mention": Said("x", (other,)),
            "raise": Raised(),
            "grant": Granted(other),
            "pass": Passed(other),
            "leave": Left(),
            "join": Joined(),
        }
        view = room.view
        allowed = floor.speakers(view)
        refused = room.tries(author, bodies[act])
        assert set(allowed) <= set(view.present)
        assert floor.holder(view) in (None, *allowed)
        if isinstance(bodies[act], Said):
            assert (refused is None) is (author in allowed)


def test_a_participant_that_gets_the_floor_back_at_once_is_asked_again() -> None:
    room = running(ADA, rule=BY_TURNS)
    moment = room.now + 1
    asked: tuple[str, ...] = ()
    for _ in range(3):
        found = attention(room.view, HOST, {}, asked)
        assert found is not None
        asked = found.keys
        for who in (HOST, ADA):
            room.post(who, Passed(who), at=moment)
