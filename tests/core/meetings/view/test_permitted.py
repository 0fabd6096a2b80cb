"""Actions that a participant may take now are those that the rules accept."""

from __future__ import annotations

import pytest

from roost.core.meetings.log.bodies import Accepted, Ended, FloorRule, Left, Moved, Passed, Raised, Said
from roost.core.meetings.view.permitted import permitted
from roost.core.meetings.view.shown import shown
from tests.core.meetings.cast import ADA, BEN, CAL, HOST, call
from tests.core.meetings.people import Room, running

PLAYERS = {"players": [ADA, BEN]}


def may(room: Room, who: str) -> set[str]:
    return set(permitted(room.view, who))


def test_before_the_start_the_creator_may_cancel_and_the_invited_may_answer() -> None:
    room = Room(HOST, ADA, BEN)
    room.post(HOST, call(ADA, optional=(BEN,)))
    assert may(room, HOST) == {"invite", "kick", "leave", "cancel"}
    assert may(room, ADA) == {"join", "decline"}
    room.post(ADA, Accepted())
    assert may(room, ADA) == {"invite", "leave"}
    assert may(room, CAL) == set()


def test_in_a_free_meeting_all_present_may_speak_and_only_the_chair_ends_it() -> None:
    room = running(ADA, BEN)
    assert may(room, HOST) == {"say", "invite", "kick", "leave", "end"}
    assert may(room, ADA) == {"say", "invite", "leave"}
    room.post(BEN, Left())
    assert may(room, BEN) == {"join"}


@pytest.mark.parametrize(
    ("rule", "holder", "other"),
    [
        (FloorRule.ROUND_ROBIN, {"say", "pass_turn"}, set[str]()),
        (FloorRule.RAISE_HAND, set[str](), {"raise_hand"}),
        (FloorRule.MODERATOR, {"say", "raise_hand", "grant"}, {"raise_hand"}),
        (FloorRule.MENTION, {"say"}, set[str]()),
    ],
)
def test_the_floor_rule_decides_who_may_speak(rule: FloorRule, holder: set[str], other: set[str]) -> None:
    room = running(ADA, BEN, rule=rule)
    about = {"say", "pass_turn", "grant"} | ({"raise_hand"} if rule is not FloorRule.RAISE_HAND else set())
    assert may(room, HOST) & about == holder
    assert may(room, ADA) & (about | {"raise_hand"}) == other


def test_a_turn_that_was_passed_and_a_hand_that_is_up_change_what_one_may_do() -> None:
    room = running(ADA, rule=FloorRule.ROUND_ROBIN)
    room.post(HOST, Passed(HOST))
    assert {"say", "pass_turn"} <= may(room, ADA)
    assert "pass_turn" in may(room, HOST), "the chair may skip the turn of another participant"
    hands = running(ADA, rule=FloorRule.RAISE_HAND)
    hands.post(ADA, Raised())
    assert {"say", "pass_turn"} <= may(hands, ADA)
    assert "raise_hand" not in may(hands, ADA)


def test_only_the_player_whose_turn_it_is_may_move_and_anyone_may_end_a_finished_game() -> None:
    room = running(ADA, BEN, game="tic-tac-toe", setting=PLAYERS)
    for who, cell in ((ADA, 1), (BEN, 4), (ADA, 2), (BEN, 5)):
        other = BEN if who == ADA else ADA
        assert ("move" in may(room, who), "move" in may(room, other), "move" in may(room, HOST)) == (True, False, False)
        assert room.view.head is not None
        room.post(who, Moved(room.view.head, {"cell": cell}))
    assert "end" not in may(room, BEN)
    assert room.view.head is not None
    room.post(ADA, Moved(room.view.head, {"cell": 3}))
    assert "move" not in may(room, ADA) | may(room, BEN)
    assert "end" in may(room, BEN)
    made = shown(room.view, ADA, "", 2).played
    assert [(one.player, one.move) for one in made] == [(BEN, {"cell": 5}), (ADA, {"cell": 3})]


def test_nothing_may_be_done_in_a_meeting_that_is_over() -> None:
    room = running(ADA)
    room.post(HOST, Said("bye"))
    room.post(HOST, Ended("done"))
    assert may(room, HOST) == may(room, ADA) == set()
