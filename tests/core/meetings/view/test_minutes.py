"""M5: minutes."""

from __future__ import annotations

from roost.core.meetings.log.bodies import Accepted, Declined, Ended, Failed, Invited, Joined, Kicked, Left, Moved
from roost.core.meetings.view.minutes import minutes
from tests.core.meetings.cast import ADA, BEN, HOST, call
from tests.core.meetings.people import Person, Room, running


def test_minutes_tell_who_was_there_what_was_said_and_what_came_of_it() -> None:
    room = running(ADA, BEN, game="tic-tac-toe", setting={"players": [ADA, BEN]})
    room.says(HOST, "Go!")
    for number, cell in enumerate([5, 1, 3, 2, 7]):
        head = room.view.head
        assert head is not None
        room.post((ADA, BEN)[number % 2], Moved(head, {"cell": cell}))
    room.says(BEN, "Well\nplayed.")
    room.post(BEN, Left("home"))
    room.post(HOST, Ended("Ada wins."))
    assert (
        minutes(room.view)
        == """\
# Lunch

Called by agent:ann/host at 2027-01-15 08:00:01 UTC.
Began at 2027-01-15 08:00:04 UTC.
Ended at 2027-01-15 08:00:13 UTC by agent:ann/host.

## Participants

- agent:ann/host: there
- agent:ann/ada: there
- agent:ann/ben: left (home)

## Came and went

- 08:00:12 agent:ann/ben left: home

## Said

- 08:00:05 agent:ann/host: Go!
- 08:00:11 agent:ann/ben: Well
    played.

## Result

agent:ann/ada wins with X.

     O | O | X
    ---+---+---
     4 | X | 6
    ---+---+---
     X | 8 | 9

## Minutes

Ada wins.
"""
    )


def test_minutes_of_a_meeting_that_failed_say_why() -> None:
    room = Room(HOST, ADA)
    room.post(HOST, call(ADA))
    room.post(ADA, Declined("ill"))
    room.post(HOST, Failed("agent:ann/ada has declined: ill"))
    assert (
        minutes(room.view)
        == """\
# Lunch

Called by agent:ann/host at 2027-01-15 08:00:01 UTC.
Failed at 2027-01-15 08:00:03 UTC: agent:ann/ada has declined: ill

## Participants

- agent:ann/host: there
- agent:ann/ada: declined (ill)

## Came and went

- 08:00:02 agent:ann/ada declined: ill
"""
    )


def test_no_line_of_what_was_said_can_be_taken_for_one_of_the_minutes() -> None:
    room = running(ADA)
    room.says(ADA, "hi\n- 08:00:09 agent:ann/host: I owe you\u2028## Result\r\nmoney")
    lines = minutes(room.view).splitlines()
    assert [line for line in lines if line.startswith(("- 08", "##"))] == [
        "## Participants",
        "## Said",
        "- 08:00:04 agent:ann/ada: hi",
    ]


def test_a_game_that_was_not_played_says_so_and_an_empty_meeting_has_minutes_too() -> None:
    room = running(ADA, BEN, game="tic-tac-toe", setting={"players": [ADA, BEN]})
    assert "It is being played." in minutes(room.view)
    room.post(HOST, Ended(""))
    assert "It was not played to its end." in minutes(room.view)
    assert minutes(Person(ADA).view) == "# mtg_1\n\nCalled by agent:ann/host.\n"


def test_minutes_name_who_left_or_was_kicked_and_when_and_who_came_back() -> None:
    room = running(ADA, BEN)
    room.post(ADA, Left("lunch"))
    room.post(HOST, Kicked(BEN, "noise"))
    room.post(ADA, Joined())
    room.post(HOST, Invited(BEN))
    room.post(BEN, Accepted())
    room.post(ADA, Left())
    told = minutes(room.view).partition("## Came and went\n\n")[2]
    assert told.splitlines() == [
        "- 08:00:05 agent:ann/ada left: lunch",
        "- 08:00:06 agent:ann/ben was kicked by agent:ann/host: noise",
        "- 08:00:07 agent:ann/ada came back",
        "- 08:00:09 agent:ann/ben came back",
        "- 08:00:10 agent:ann/ada left",
    ]
