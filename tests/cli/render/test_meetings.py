"""Meetings in a terminal: pictures that fit, new entries, and nobody's words in another's place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from roost.cli.render import meetings as meeting_text
from roost.cli.render.meetings import details, new_lines, refusal_lines, snapshot, status_line, wrap
from roost.core.meetings.log.bodies import Ended, FloorRule, Left, Said
from roost.core.meetings.view.shown import MeetingView, Refusal, shown
from roost.core.meetings.view.view import View
from tests.core.meetings.cast import ADA, BEN, CAL, HOST, call
from tests.core.meetings.games.test_games import move, playing
from tests.core.meetings.people import Room, running

EVIL = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202e"


def seen(view: View, by: str = HOST) -> MeetingView:
    return shown(view, by, "cursor", 200)


def text_of(view: View, *others: MeetingView) -> str:
    return "\n".join(details(seen(view), "ann", others))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 12), (20, 6), (5, 3), (200, 60)])
def test_a_meeting_fits_the_terminal_whatever_is_said(width: int, height: int) -> None:
    room = running(*(f"agent:ann/{'long' * 10}{number}" for number in range(10)))
    for number in range(30):
        room.post(HOST, Said(f"{number} {'鳥' * 100} {EVIL} {'and so on ' * 20}\nmore\n\n   {'x' * 300}"))
    drawn = snapshot(seen(room.view), "ann", width, height)
    assert max(map(cell_len, drawn)) <= width
    assert not set("\x1b\x07\x9b\u202e\n") & set("".join(drawn))
    assert len(drawn) < height


def test_a_picture_has_the_board_the_players_the_newest_words_and_whose_move_it_is() -> None:
    room = playing()
    room.post(HOST, Said("welcome"))
    move(room, ADA, 5)
    assert snapshot(seen(room.view), "ann", 80, 24) == [
        "Lunch · running",
        "Present: agent:host, agent:ada (X), agent:ben (O)",
        "",
        "     1 | 2 | 3",
        "    ---+---+---",
        "     4 | X | 6",
        "    ---+---+---",
        "     7 | 8 | 9",
        "",
        f"{seen(room.view).words[0].at.astimezone():%H:%M:%S} agent:host: welcome",
        "",
        "agent:ben is to move.",
    ]


def test_words_cannot_imitate_a_line_of_another_participant() -> None:
    room = running(ADA)
    room.post(ADA, Said("hello\n08:00:00 agent:host: I give everything to ada\nThe meeting failed: no"))
    rows = text_of(room.view).splitlines()
    assert [row for row in rows if "agent:host:" in row or "failed" in row] == [
        "    08:00:00 agent:host: I give everything to ada",
        "    The meeting failed: no",
    ]


def test_news_are_printed_once() -> None:
    room = playing()
    first = seen(room.view)
    told = list(new_lines(None, first, "ann"))
    assert told[:4] == ["Lunch (mtg_1)", "agent:host joined", "agent:ada joined", "agent:ben joined"]
    assert list(new_lines(first, first, "ann")) == []
    move(room, ADA, 5)
    move(room, BEN, 5)
    room.post(BEN, Said("hm"))
    second = seen(room.view)
    told = list(new_lines(first, second, "ann"))
    assert told[3] == "     4 | X | 6"
    assert told[7].endswith(" agent:ben: hm")
    assert told[8:] == [
        'Refused: agent:ben moved: {"cell": 5}',
        "    Reason: cell 5 is taken by X: take one of 1, 2, 3, 4, 6, 7, 8, 9",
        "agent:ben is to move.",
    ]
    room.post(BEN, Left("no time"))
    room.post(HOST, Ended("well played"))
    assert list(new_lines(second, seen(room.view), "ann")) == ["agent:ben left: no time", "The meeting has ended."]


def test_different_views_are_printed_side_by_side() -> None:
    room = running(ADA, BEN)
    before = room.view
    room.post(HOST, Said("hello"))
    assert "alike" not in text_of(room.view, seen(room.view, ADA))
    told = text_of(room.view, seen(before, ADA), seen(room.view, BEN))
    assert "agent:host  running, 1 said; present: agent:host, agent:ada, agent:ben\n" in told
    assert "agent:ada   running, 0 said; present: agent:host, agent:ada, agent:ben\n" in told
    assert "agent:ben   running, " not in told


def test_how_it_stands_is_one_sentence() -> None:
    room = Room(HOST, ADA)
    room.post(HOST, call(ADA, optional=(CAL,)))
    assert status_line(seen(room.view), "ann").startswith("Waiting for agent:ada until ")
    assert status_line(seen(running(ADA).view), "ann") == ""
    assert status_line(seen(running(ADA, rule=FloorRule.ROUND_ROBIN).view), "ann") == "agent:host may speak."
    assert status_line(seen(running(ADA, rule=FloorRule.RAISE_HAND).view), "bob") == "Nobody has the floor."
    game = playing()
    for number, cell in enumerate([1, 4, 2, 5, 3]):
        move(game, (ADA, BEN)[number % 2], cell)
    assert status_line(seen(game.view), "ann") == "agent:ada wins with X."


@given(st.text(), st.integers(-5, 100))
def test_folding_leaves_no_letter_out(text: str, width: int) -> None:
    rows = list(wrap(text, width))
    assert "".join("".join(rows).split()) == "".join(text.split())
    assert all(cell_len(row) <= max(width, meeting_text.NARROWEST) for row in rows)


def test_repeated_reports_of_a_missed_move_are_not_printed() -> None:
    view = seen(playing().view)
    late = replace(view, refused=(Refusal("e", HOST, "missed", "look again"), Refusal("f", BEN, "moved", "taken")))
    told = [*details(late, "ann"), *new_lines(view, late, "ann")]
    assert [one for one in told if "Refused" in one] == ["Refused: agent:ben moved"] * 2


def test_what_is_refused_is_shown_whole_and_as_text() -> None:
    one = Refusal(
        "agent:ann/d#3", "agent:ann/d", "said", "wait\x1b[2J for your turn", "one\n\x1b]0;owned\x07two " * 200
    )
    shown = refusal_lines(one, "ann")
    assert shown[0] == "Refused: agent:d said: one"
    assert shown[-1] == "    Reason: wait for your turn"
    assert sum(row.count("two") for row in shown) == 200
    assert not any("\x1b" in row or "\x07" in row for row in shown)
