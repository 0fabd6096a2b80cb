"""M8: a player who does not move is asked once more, and then has lost; so has one who has gone when it is to move."""

from __future__ import annotations

import json

import pytest

from roost.core.meetings.games import games
from roost.core.meetings.games.games import Outcome
from roost.core.meetings.log.bodies import Bounds, Ended, Joined, Kicked, Left, Missed, Moved, Said
from roost.core.meetings.log.entries import from_json, to_json
from roost.core.meetings.participants.attention import attention
from roost.core.meetings.participants.decisions import due, due_at
from roost.core.meetings.view.minutes import minutes
from roost.core.meetings.view.play import mover
from tests.core.meetings.cast import ADA, BEN, HOST
from tests.core.meetings.people import Room, running

TURN = 60_000
LOST = Outcome("agent:ann/ada did not move: agent:ann/ben wins with O.", BEN)


def playing(misses: int = 2, turn: int = TURN) -> Room:
    bounds = Bounds(turn=turn, misses=misses)
    return running(ADA, BEN, game="tic-tac-toe", setting={"players": [ADA, BEN]}, bounds=bounds)


def miss(room: Room, who: str = HOST) -> str | None:
    """Somebody says that the time is out; why it is not."""
    head = room.view.head
    assert head is not None
    return room.tries(who, Missed(head))


def ada_moves_and_wins(room: Room, told_by: str) -> None:
    """Ben is to move then, and has gone."""
    head = room.view.head
    assert head is not None
    room.post(ADA, Moved(head, {"cell": 5}))
    body = due(room.view, told_by, room.now)
    assert isinstance(body, Missed)
    room.post(told_by, body)
    assert room.view.outcome == Outcome("agent:ann/ben did not move: agent:ann/ada wins with X.", ADA)


def test_a_player_that_does_not_move_in_time_is_asked_again_and_then_loses() -> None:
    room = playing()
    assert "ada still has time for its move" in str(miss(room))
    room.now += TURN
    asked = attention(room.view, ADA, room.view.seen, ())
    assert asked is not None
    assert miss(room) is None
    assert (room.view.outcome, mover(room.view)) == (None, ADA)
    again = attention(room.view, ADA, room.view.seen, asked.keys)
    assert (str(again.why) if again else None) == "move"
    assert "still has time" in str(miss(room)), "it has its time again"
    room.now += TURN
    assert miss(room) is None
    assert (room.view.outcome, mover(room.view)) == (LOST, None)
    assert LOST.text in minutes(room.view)


def test_a_move_in_time_makes_good_for_what_was_missed() -> None:
    room = playing()
    room.now += TURN
    assert miss(room) is None
    for who, cell in [(ADA, 1), (BEN, 2)]:
        head = room.view.head
        assert head is not None
        assert room.tries(who, Moved(head, {"cell": cell})) is None
    room.now += TURN
    assert miss(room) is None
    assert (room.view.misses, room.view.outcome) == (1, None)


def test_a_move_and_the_end_of_its_time_are_one_or_the_other() -> None:
    room = playing()
    head, room.now = room.view.head, room.now + TURN
    assert head is not None
    assert miss(room) is None
    assert "read the board again, then move" in str(room.tries(ADA, Moved(head, {"cell": 5})))
    assert "read the board again, then move" in str(room.tries(BEN, Missed(head)))
    assert room.view.misses == 1


@pytest.mark.parametrize("kicked", [False, True])
def test_a_player_that_left_is_not_waited_for(kicked: bool) -> None:
    room = playing()
    if kicked:
        room.post(HOST, Kicked(BEN))
    else:
        room.post(BEN, Left("tired"))
    assert due_at(room.view, HOST) == room.view.moved_at + TURN, "it is not its move yet"
    ada_moves_and_wins(room, told_by=HOST)


def test_the_last_player_wins_when_it_is_the_turn_of_another() -> None:
    room = playing()
    room.post(HOST, Left())
    room.post(BEN, Left("stopped"))
    assert due(room.view, ADA, room.now) is None, "its own move is waited for, as long as any"
    assert due_at(room.view, ADA) == room.view.moved_at + TURN
    assert isinstance(due(room.view, ADA, room.now + TURN), Ended)
    ada_moves_and_wins(room, told_by=ADA)
    assert isinstance(due(room.view, ADA, room.now), Ended)


def test_a_player_that_is_back_at_its_turn_continues() -> None:
    room = playing()
    room.post(BEN, Left())
    room.post(BEN, Joined())
    head = room.view.head
    assert head is not None
    room.post(ADA, Moved(head, {"cell": 5}))
    assert due(room.view, HOST, room.now) is None
    assert "still has time" in str(miss(room))


def test_missed_moves_are_reported_by_other_participants_in_turn() -> None:
    room = playing()
    assert [due_at(room.view, who, grace=5) for who in (HOST, BEN)] == [
        room.view.moved_at + TURN,
        room.view.moved_at + TURN + 5,
    ]
    assert due_at(room.view, ADA) is None


def test_one_miss_may_lose_and_without_a_time_limit_there_are_none() -> None:
    strict = playing(misses=1)
    strict.now += TURN
    assert miss(strict) is None
    assert strict.view.outcome == LOST
    patient = playing(turn=0)
    patient.now += 10**9
    assert "still has time" in str(miss(patient))
    assert due_at(patient.view, HOST) is None


def test_nothing_is_missed_without_a_player_to_move() -> None:
    room = running(ADA, BEN)
    assert "this meeting has no game" in str(miss(room))


def test_a_game_that_fails_at_it_ends_without_a_winner() -> None:
    assert games.forfeit({}, "chess", None, ADA) == Outcome("agent:ann/ada did not move: nobody wins.")


def test_a_call_from_before_there_was_this_bound_has_the_usual_one() -> None:
    [called, *_] = playing()[HOST].log
    plain = json.loads(to_json(called))
    del plain["body"]["bounds"]["misses"]
    assert from_json(json.dumps(plain)) == called


def test_the_creator_is_asked_to_open_the_meeting_although_others_spoke_first() -> None:
    room = running(ADA, BEN)
    room.post(ADA, Said("me first"))
    found = attention(room.view, HOST, {}, ())
    assert (str(found.why) if found else None) == "opening"
    assert found is not None
    later = attention(room.view, HOST, {}, found.keys)
    assert (str(later.why) if later else None) == "words", "it is asked once"
    room.post(HOST, Left())
    following = attention(room.view, ADA, {}, ())
    assert following is None, "the next chair does not open it again"
