"""Meetings on the command line: each command as it is typed, and real processes where a terminal matters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import roost as package
from roost.cli.render import agents, screen
from roost.testing import script
from roost.wiring import announce
from tests.api.serving import serving
from tests.cli.running import COMMAND, command, environment
from tests.cli.terminals import terminal
from tests.conftest import QUICK, eventually
from tests.forks import Popen

BRAINS: dict[str, package.Brain] = {"silent": script("")}


@pytest.fixture
def service(home: Path) -> Iterator[package.AgentService]:
    """A service of ann's with the agents d, e and f, which say nothing; the commands find it and work through it."""
    url = f"sqlite:///{home}/data/roost.db"
    with package.open(url, brains=BRAINS, limits=QUICK) as opened, serving(opened) as running:
        announce(opened.roost, url=running.url, token=running.identity.token)
        opened.agents.create_many("ann", ["d", "e", "f"], profile="silent")
        yield opened


def run(*arguments: str, stdin: str = "") -> Any:
    return command("meetings", *arguments, stdin=stdin)


def said(*arguments: str, stdin: str = "") -> str:
    """Return the output of a command that succeeds."""
    done = run(*arguments, stdin=stdin)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return str(done.stdout)


def as_json(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


def refused(*arguments: str, code: int = 1) -> str:
    """Return the reason that a command gives for doing nothing, in one sentence."""
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    return str(done.stderr)


def called(service: package.AgentService, *arguments: str) -> str:
    """The id of a meeting that has begun."""
    meeting = said("call", *arguments).strip()
    eventually(lambda: service.meetings.view("ann", meeting).phase == "running")
    return meeting


def test_a_player_that_is_silent_for_longer_than_a_turn_may_take_has_lost(service: package.AgentService) -> None:
    meeting = said(
        "call", "A game", "--game", "tic-tac-toe", "--player", "d", "--player", "e", "--turn-timeout", "0.1s"
    ).strip()
    assert "wins" in eventually(lambda: service.meetings.view("ann", meeting).outcome or "")


def test_a_turn_in_a_meeting_is_listed_as_what_an_agent_does(service: package.AgentService) -> None:
    agent = replace(
        service.agents.get("ann", "d"), current_tasks=("meeting_0123456789:agent:ann/d:1", "task_abcdefghij")
    )
    assert agents.agent_row(agent)[3] == "meeting 23456789 +1"


def test_a_meeting_is_called_listed_shown_spoken_in_and_ended(service: package.AgentService) -> None:
    assert said("ls").startswith("No meetings")
    meeting = called(service, "Where do we nest?", "--with", "d", "--optional", "agent:e")
    part = meeting[-8:]

    def seen_by(who: str) -> package.MeetingView:
        return service.meetings.view("ann", meeting, seen_by=who)

    eventually(lambda: seen_by("agent:d").phase == "running")
    headings, row = said("ls").splitlines()
    assert headings.split() == ["ID", "PHASE", "YOUR", "STATUS", "CALLED", "BY", "TOPIC"]
    assert row.split()[:3] == [part, "running", "in"]
    assert row.endswith("  user:ann  Where do we nest?")
    assert [one["phase"] for one in as_json("ls", "--phase", "running", "--with", "d")] == ["running"]
    assert as_json("ls", "--phase", "ended") == []
    assert said("say", part, "In the\noak", "--to", "d").endswith(" user:ann (to agent:d): In the\n    oak\n")
    assert said("say", part, "-", "--as", "d", stdin="In the elm").endswith(" agent:d: In the elm\n")
    assert as_json("say", part, "Well", "--key", "k") == as_json("say", part, "Well", "--key", "k")
    eventually(lambda: seen_by("agent:d").said == seen_by("agent:e").said == 3)
    shown = said("show", part)
    assert "topic      Where do we nest?\nphase      running\n" in shown
    assert "user:ann  in, chair\nagent:d   in, required\nagent:e   in\n" in shown
    assert shown.index("In the\n    oak") < shown.index("agent:d: In the elm")
    assert "alike" not in shown
    assert as_json("show", part, "--as", "d")["seenBy"] == "agent:ann/d"
    assert said("end", part, "--minutes", "The elm.").startswith("You are in 'Where do we nest?' (ended).")
    eventually(lambda: seen_by("agent:e").is_over)
    assert said("minutes", part, "--as", "e").endswith("## Minutes\n\nThe elm.\n")
    assert as_json("minutes", part)["meetingId"] == meeting
    assert "the meeting has ended: call another one" in refused("say", part, "too late")


def test_a_call_is_cancelled_before_it_begins(service: package.AgentService) -> None:
    service.agents.create("ann", "away", profile="echo", start=False)
    meeting = service.meetings.call("ann", "Where?", required=["agent:away"])
    assert "the meeting has not begun: wait until it has started, or cancel it" in refused("end", meeting)
    told = said("cancel", meeting, "--reason", "rain")
    assert told == "You are in 'Where?' (failed). The meeting failed: cancelled by user:ann: rain.\n"
    assert as_json("cancel", meeting)["reason"] == "cancelled by user:ann: rain"


def test_a_person_plays_a_game_to_its_end(service: package.AgentService) -> None:
    meeting = called(service, "A game", "--game", "tic-tac-toe", "--player", "user:ann", "--player", "d")
    for wrong, why in [("10", "from 1 to 9"), ('{"row": 1}', "from 1, top left, to 9"), ("[]", "top left")]:
        assert why in refused("move", meeting, wrong)
    assert "is not a valid move" in refused("move", meeting, "the middle", code=2)
    assert "it is the turn of user:ann" in refused("move", meeting, "5", "--as", "d")
    assert said("move", meeting, "5").endswith("     7 | 8 | 9\n\nagent:d is to move.\n")
    eventually(lambda: service.meetings.view("ann", meeting, seen_by="agent:d").moves == 1)
    assert "it is the turn of agent:d" in refused("move", meeting, "4")
    assert "cell 5 is taken by X" in refused("move", meeting, "5", "--as", "d")
    for number, cell in enumerate((1, 4, 2, 6)):
        by = [("--as", "d"), ()][number % 2]
        eventually(lambda: service.meetings.view("ann", meeting, seen_by="agent:d").moves == number + 1)  # noqa: B023
        said("move", meeting, str(cell), *by)
    won = as_json("show", meeting)
    assert (won["outcome"], won["winner"]) == ("user:ann wins with X.", "user:ann")
    assert "agent:d   in, required, plays O\n" in said("show", meeting)
    assert "the game is over" in refused("move", meeting, "9")
    said("end", meeting)
    assert "## Result\n\nuser:ann wins with X." in said("minutes", meeting)


def test_people_come_go_and_are_given_the_floor(service: package.AgentService) -> None:
    meeting = called(service, "Who speaks?", "--with", "d", "--floor", "moderator", "--as", "e")
    assert "user:ann" not in said("show", meeting)
    assert said("join", meeting).startswith("You are in 'Who speaks?' (running).")
    assert "gives the floor: raise a hand" in refused("say", meeting, "hello")
    said("hand", meeting)
    eventually(lambda: service.meetings.view("ann", meeting, seen_by="agent:e").hands == ("user:ann",))
    assert "raised hands  user:ann" in said("show", meeting)
    assert said("grant", meeting, "user:ann", "--as", "e").endswith("user:ann, agent:e may speak.\n")
    eventually(lambda: "user:ann" in service.meetings.view("ann", meeting).speakers)
    said("pass", meeting)
    assert "gives the floor" in refused("say", meeting, "hello")
    said("invite", meeting, "f", "--as", "e")
    eventually(lambda: len(service.meetings.view("ann", meeting).present) == 4)
    said("kick", meeting, "f", "--as", "e")
    assert said("leave", meeting, "--reason", "lunch").startswith("You are out of 'Who")
    shown = said("show", meeting, "--as", "e")
    assert "agent:f   kicked\n" in shown
    eventually(lambda: "user:ann  left: lunch\n" in said("show", meeting, "--as", "e"))


def test_a_declining_required_participant_fails_the_meeting_for_all(service: package.AgentService) -> None:
    service.agents.stop("ann", "d")
    meeting = said("call", "Lunch", "--with", "user:ann", "--with", "d", "--as", "e").strip()
    assert "Waiting for user:ann, agent:d until" in said("show", meeting)
    assert said("decline", meeting, "--reason", "not hungry").startswith("You are not coming to 'Lunch' (")
    eventually(lambda: service.meetings.view("ann", meeting, seen_by="agent:e").phase == "failed")
    assert "The meeting failed: user:ann has declined: not hungry." in said("show", meeting, "--as", "e")


def test_an_error_is_one_sentence_and_changes_nothing(service: package.AgentService) -> None:
    bobs = service.meetings.call("bob", "Secret")
    for arguments in [
        ("show", "nothing"),
        ("say", bobs, "hello"),
        ("join", bobs),
        ("move", "nothing", "5"),
        ("watch", "nothing"),
        ("minutes", "nothing"),
        ("end", bobs),
    ]:
        assert "it was deleted, or it never existed" in refused(*arguments)
    assert "use one of" in refused("call", "x", "--with", "d", "--floor", "none", code=2)
    assert "'nobody'" in refused("call", "x", "--with", "nobody")
    assert "'nobody'" in refused("call", "x", "--with", "d", "--as", "nobody")
    assert "tic-tac-toe needs" in refused("call", "x", "--game", "tic-tac-toe", "--player", "d", code=2)
    assert "'chess'" in refused("call", "x", "--game", "chess")
    assert "is not a valid duration" in refused("call", "x", "--deadline", "soon", code=2)
    assert as_json("ls") == []
    first, second = (service.meetings.call("ann", topic) for topic in ("one", "two"))
    both = refused("show", "meeting_")
    assert first in both
    assert second in both


def test_nothing_in_a_list_or_a_meeting_moves_the_cursor(service: package.AgentService) -> None:
    evil = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202e and more of it, much more than there is room for in a line " * 3
    assert "must be printable" in refused("call", evil)
    meeting = called(service, "鳥" * 200, "--with", "d")
    said("say", meeting, evil)
    listed = said("ls")
    assert max(map(cell_len, listed.splitlines())) <= 80
    said("end", meeting, "--minutes", evil)
    everything = listed + said("show", meeting) + said("minutes", meeting) + said("watch", meeting)
    assert not set("\x1b\x07\x9b\u202e") & set(everything)


def test_without_a_server_a_meeting_runs_while_it_is_watched(home: Path) -> None:
    for name in ("wren", "robin"):
        assert command("agents", "create", name, "--profile", "demo-reporter").exit_code == 0
    call = ["call", "Standup", "--floor", "round_robin", "--as", "wren", "--with", "robin"]
    done = run(*call, "--watch")
    assert done.exit_code == 0
    assert done.stderr.startswith("meeting_")
    lines = done.stdout.splitlines()
    assert [line.partition(" ")[2] for line in lines if "Nothing new." in line] == [
        "agent:wren: Nothing new.",
        "agent:robin: Nothing new.",
    ]
    assert lines[-1] == "The meeting has ended."
    kept = run(*call)
    assert kept.exit_code == 0
    assert kept.stderr.startswith("roost: Roost is not running")


def test_a_person_attends_and_what_is_typed_is_said_or_is_a_move(service: package.AgentService) -> None:
    service.agents.create("ann", "p", profile="demo-player")
    meeting = called(service, "A game", "--game", "tic-tac-toe", "--player", "user:ann", "--player", "p")
    told = said("attend", meeting, stdin="well then\n10\n5\n")
    assert " user:ann: well then\n" in told
    assert "Refused: the cell must be a whole number from 1 to 9, not 10\n" in told
    assert service.meetings.view("ann", meeting).state["board"][4] == "X"
    talk = called(service, "A talk", "--with", "d", "--as", "e")
    said("attend", talk, stdin="7 is a number,\nand here\n7\n")
    words = [word.text for word in service.meetings.view("ann", talk, seen_by="user:ann").words]
    assert words == ["7 is a number,", "and here", "7"]
    said("end", talk, "--as", "e")
    assert said("attend", talk).endswith("The meeting has ended.\n")


# --- watching ----------------------------------------------------------------------------------------


def test_what_is_watched_comes_line_by_line_or_as_json_and_ends_with_the_meeting(
    tmp_path: Path, service: package.AgentService
) -> None:
    meeting = called(service, "Watched", "--with", "d")
    files = [tmp_path / "lines", tmp_path / "json"]
    watching = []
    for file, more in zip(files, ([], ["--json"]), strict=True):
        with file.open("wb") as output:
            arguments = [*COMMAND, "meetings", "watch", meeting, *more]
            watching.append(Popen[bytes](arguments, cwd=tmp_path, env=environment(tmp_path), stdout=output))
    try:
        eventually(lambda: all(file.read_text() for file in files), 30)
        said("say", meeting, "hello")
        eventually(lambda: "user:ann: hello" in files[0].read_text())
        said("end", meeting)
        assert [process.wait(20) for process in watching] == [0, 0]
    finally:
        for process in watching:
            process.kill()
            process.wait(10)
    assert files[0].read_text().splitlines()[0] == f"Watched ({meeting})"
    assert files[0].read_text().splitlines()[-1] == "The meeting has ended."
    views = [json.loads(line) for line in files[1].read_text().splitlines()]
    assert [views[0]["said"], views[-1]["said"], views[-1]["phase"]] == [0, 1, "ended"]


def test_in_a_terminal_the_board_is_drawn_over_itself_and_stays_at_the_end(
    tmp_path: Path, service: package.AgentService
) -> None:
    meeting = called(service, "A game", "--game", "tic-tac-toe", "--player", "user:ann", "--player", "d")
    with terminal(tmp_path, "meetings", "watch", meeting) as shown:
        shown.becomes("user:ann is to move.")
        said("move", meeting, "5")
        shown.becomes(" 4 | X | 6")
        said("end", meeting)
        shown.becomes(screen.SHOW)
        assert shown.process.wait(20) == 0
    assert shown.seen.index(screen.HIDE) < shown.seen.index("A game")
    assert "\x1b[10A" in shown.seen
