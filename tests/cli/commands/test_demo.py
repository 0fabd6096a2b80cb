"""Demos: they need no key, end by themselves, and leave nothing behind unless told to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import command, roost


def test_the_game_of_the_demo_is_played_to_its_end_and_again_by_its_seed(home: Path) -> None:
    first = roost(home, "demo", "tictactoe", "--fast", "--seed", "3")
    assert (first.returncode, first.stderr) == (0, "")
    again = command("demo", "tictactoe", "--fast", "--seed", "3")
    for told in (first.stdout, again.stdout):
        rows = [row for row in told.splitlines() if row.startswith("     ")]
        assert rows[-3:] == ["     O | X | X", "     X | X | O", "     X | O | O"]
        assert "was refused: it is the turn of agent:finch" in told
        assert "was refused: cell 4 is taken by X" in told
        assert "agent:owl: agent:crow wins with X.\n" in told
        assert "3 views, all equal: agent:owl, agent:crow, agent:finch." in told
    assert list((home / "data").iterdir()) == []


def test_a_person_plays_in_the_demo_and_wrong_moves_are_refused(home: Path) -> None:
    moves = "5\n5\n0\nhello there\n1\n2\n3\n4\n6\n7\n8\n9\n"
    done = command("demo", "tictactoe", "--human", "--fast", "--seed", "3", stdin=moves)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Refused: cell 5 is taken by X" in done.stdout
    assert "Refused: the cell must be" in done.stdout
    assert "user:ann: hello there\n" in done.stdout
    assert "The meeting has ended.\n" in done.stdout
    gone = command("demo", "tictactoe", "--human", "--fast", stdin="5\n")
    assert gone.exit_code == 0
    assert "The meeting has ended.\n" in gone.stdout.partition("You have left.\n")[2]


def test_the_other_demos_end_by_themselves_and_can_be_kept(home: Path) -> None:
    standup = command("demo", "standup", "--fast", "--keep")
    assert (standup.exit_code, standup.stderr) == (0, "")
    blocked = "agent:demo-magpie: I found two spoons. Today I am blocked: the window is shut."
    assert standup.stdout.endswith(f"5 have reported.\nBlocked: {blocked}\n")
    again = command("demo", "standup", "--fast", "--keep", "--json")
    assert json.loads(again.stdout.splitlines()[-1])["phase"] == "ended"
    assert [one["phase"] for one in json.loads(command("meetings", "ls", "--json").stdout)] == ["ended", "ended"]
    planned = command("demo", "planner", "--fast")
    assert planned.stdout.endswith("- sentry: I see to a watch for the night.\n")


def test_a_brain_that_does_not_move_is_not_waited_for_but_one_that_thinks_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in {
        "demos.stage.RESTED": 0.3,
        "demos.stage.PATIENCE": 2.0,
        "cli.commands.meetings.watch.LOOK": 0.1,
        "cli.commands.demo.PACE": 60,
    }.items():
        monkeypatch.setattr(f"roost.{name}", seconds)
    stuck = command("demo", "tictactoe", "--brain", "echo")
    why = "agent:crow does not move: the profile 'echo' cannot play; use a profile with a model"
    assert (stuck.exit_code, stuck.stderr) == (1, f"roost: {why}\n")
    thinking = command("demo", "tictactoe")
    assert thinking.stderr == "roost: nothing has happened for 2 s: waiting for agent:crow\n"


def test_a_demo_in_which_nothing_happens_any_more_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.demos.stage.PATIENCE", 0.2)
    monkeypatch.setattr("roost.cli.commands.meetings.watch.LOOK", 0.1)
    stuck = command("demo", "tictactoe", "--fast", "--brain", "demo-reporter")
    assert stuck.exit_code == 1
    assert stuck.stderr == "roost: nothing has happened for 0.2 s: waiting for agent:crow\n"
    both = command("demo", "tictactoe", "--human", "--json")
    assert (both.exit_code, "cannot be combined" in both.stderr) == (2, True)
    unknown = command("demo", "tictactoe", "--brain", "nobody")
    assert (unknown.exit_code, "there is no profile 'nobody'" in unknown.stderr) == (1, True)


def test_the_tour_is_built_in_the_store_and_removed_from_it(home: Path) -> None:
    built = command("demo", "tour")
    assert (built.exit_code, built.stderr) == (0, "")
    assert "The tour is built: tour-planner, tour-buyer, tour-watcher." in built.stdout
    names = [one["agentId"] for one in json.loads(command("agents", "ls", "--json").stdout)]
    assert sorted(names) == ["tour-buyer", "tour-planner", "tour-watcher"]
    assert json.loads(command("demo", "tour", "--remove", "--json").stdout)["removed"] == 3
    assert json.loads(command("agents", "ls", "--json").stdout) == []
    assert command("demo", "tour", "--remove").stdout == "There is no tour.\n"
