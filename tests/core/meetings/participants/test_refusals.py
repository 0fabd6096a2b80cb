"""M7: an act that was refused stays refused, and its author sees it."""

from __future__ import annotations

from roost.core.meetings.log.bodies import EntryKind, FloorRule, Moved, Passed, Said, Withheld
from roost.core.meetings.log.entries import Vector
from roost.core.meetings.participants.attention import MOST_REFUSED, Attention, Why, attention, refusals
from tests.core.meetings.cast import ADA, BEN, HOST
from tests.core.meetings.people import Room, running, said

LATE = Withheld(EntryKind.SAID, "late", "it is the turn of another", "run_1")


def asked(room: Room, who: str, heard: Vector, keys: tuple[str, ...] = ()) -> Attention | None:
    return attention(room.view, who, heard, keys)


def test_what_was_withheld_is_not_said_though_it_turns_out_to_have_been_lawful() -> None:
    room = running(ADA, BEN, rule=FloorRule.ROUND_ROBIN)
    room[HOST].now = room.now + 1_000
    passed = room[HOST].write(Passed(HOST))  # the others hear of it later
    room[ADA].now = room.now + 2_000
    late = room[ADA].write(LATE)
    room.tell(passed, late)
    assert (said(room.view), room.speakers()) == ([], (ADA,))
    [one] = room.view.refused
    assert (one.author, one.kind, one.text, one.reason) == (ADA, EntryKind.SAID, "late", LATE.reason)


def test_void_words_are_reported_to_their_author_only() -> None:
    room = running(ADA, BEN, rule=FloorRule.ROUND_ROBIN)
    heard = dict(room.view.seen)
    room.post(ADA, Said("out of turn"))
    assert [one.text for one in refusals(room.view, ADA, heard)] == ["out of turn"]
    found = asked(room, ADA, heard)
    assert found is not None
    assert (found.why, found.at_once) == (Why.REFUSED, True)
    assert asked(room, BEN, heard) is None
    assert asked(room, ADA, room.view.seen) is None, "it has had a turn since"


def test_what_everyone_does_of_itself_is_no_refusal_of_a_brain() -> None:
    room = running(ADA, BEN, rule=FloorRule.ROUND_ROBIN)
    heard = dict(room.view.seen)
    room.post(HOST, Passed(HOST))
    room.post(BEN, Passed(HOST))
    assert len(room.view.refused) == 1
    assert refusals(room.view, BEN, heard) == ()


def test_refused_again_and_again_it_is_asked_a_few_times_and_later_anew() -> None:
    room = running(ADA, BEN, rule=FloorRule.ROUND_ROBIN)
    keys: tuple[str, ...] = ()
    heard, turns = dict(room.view.seen), 0
    room.post(ADA, LATE)
    while (found := asked(room, ADA, heard, keys)) is not None:
        heard, keys, turns = dict(room.view.seen), found.keys, turns + 1
        room.post(ADA, LATE)
    assert turns == MOST_REFUSED
    room.post(HOST, Said("go on"))
    floor = asked(room, ADA, heard, keys)
    assert floor is not None
    assert floor.why is Why.FLOOR
    heard = dict(room.view.seen)
    room.post(BEN, Passed(ADA))
    room.post(HOST, Passed(ADA))
    room.post(ADA, LATE)
    again = asked(room, ADA, heard, floor.keys)
    assert again is not None
    assert again.why is Why.REFUSED


def test_a_move_that_was_withheld_counts_as_tried_where_it_could_have_been_made() -> None:
    players = {"players": [ADA, BEN]}
    room = running(ADA, BEN, game="tic-tac-toe", setting=players)
    room.post(ADA, Withheld(EntryKind.MOVED, '{"cell": 5}', "too late"))
    assert (room.view.tries, room.view.state["board"]) == (1, [""] * 9)
    assert room.view.head is not None
    room.post(ADA, Moved(room.view.head, {"cell": 5}))
    assert room.view.tries == 2
