"""Names and states of meetings in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.core.meetings.log.bodies import Ended, FloorRule, Raised, Said
from roost.core.meetings.view.shown import MeetingView, shown
from roost.ui.meetings import status
from roost.ui.meetings.board import winning_row
from roost.ui.meetings.names import listed, readable, short
from tests.core.meetings.cast import ADA, BEN, HOST
from tests.core.meetings.people import Room, running


def view(room: Room, who: str = HOST) -> MeetingView:
    return shown(room.view, who, f"{room.view.seen}", 10)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("user:ann", "You"),
        ("agent:ann/d", "d"),
        ("agent:bob/d", "bob/d"),
        ("user:bob", "bob"),
        ("user:user_01a1f5082081", "Visitor 2081"),
        ("agent:ann/x/d", "ann/x/d"),
    ],
)
def test_names_of_participants(address: str, name: str) -> None:
    assert short(address, "ann") == name


def test_a_list_of_many_names_is_cut() -> None:
    assert listed([ADA], "ann") == "ada"
    assert listed([HOST, ADA], "ann") == "host and ada"
    assert listed([f"agent:ann/{letter}" for letter in "abcdefg"], "ann") == "a, b, c, d and 3 more"


def test_sentences_of_roost_name_agents_as_the_page_does() -> None:
    assert (
        readable("agent:ann/d wins with X, not agent:bob/e or user:ann.", "ann") == "d wins with X, not bob/e or ann."
    )


def test_who_has_the_floor_and_who_is_next_is_said_in_words() -> None:
    room = running(ADA, BEN, rule=FloorRule.ROUND_ROBIN)
    assert status.sentence(view(room), "ann") == "host has the floor. Next: ada."
    hands = running(ADA, BEN, rule=FloorRule.RAISE_HAND)
    assert status.sentence(view(hands), "ann") == "Nobody has the floor: raise a hand to speak."
    hands.post(BEN, Raised())
    hands.post(ADA, Raised())
    assert status.sentence(view(hands), "ann") == "ben has the floor. Next: ada."
    asked = running(ADA, BEN, rule=FloorRule.MENTION)
    asked.post(HOST, Said("you", to=(BEN,)))
    assert status.sentence(view(asked), "ann") == "ben and host may speak."
    asked.post(HOST, Ended())
    assert status.sentence(view(asked), "ann") == "The meeting has ended."


def test_a_view_that_misses_messages_says_how_many() -> None:
    room = running(ADA)
    old = view(room, ADA)
    for text in ("one", "two", "three"):
        room.post(HOST, Said(text))
    new = view(room)
    assert status.standing(new, [old, new]) == "3 messages, up to date"
    assert status.standing(old, [old, new]) == "3 messages behind"
    assert status.standing(replace(new, cursor="other"), [new]) == "3 messages, catching up"


def test_the_winning_row_is_marked() -> None:
    assert winning_row(["X", "O", "", "X", "O", "", "X", "", ""]) == [1, 4, 7]
    assert winning_row([""] * 9) == []
