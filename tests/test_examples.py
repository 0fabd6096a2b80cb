from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def run(name: str, folder: Path) -> list[str]:
    """Return what the example prints; it must print nothing on stderr."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    result = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "ROOST_DATA": str(folder)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.splitlines()


def test_the_parrot_repeats_and_finds_its_talks_again(tmp_path: Path) -> None:
    assert run("parrot.py", tmp_path) == ["hello there ", "talks so far: 1"]
    assert run("parrot.py", tmp_path) == ["hello there ", "talks so far: 2"]


def test_an_interrupted_answer_keeps_its_first_part_and_never_gets_its_second(tmp_path: Path) -> None:
    assert run("interrupt.py", tmp_path) == [
        "1 user  complete    tell me everything",
        "2 agent interrupted part1 ",
        "3 user  complete    never mind",
        "4 agent complete    You said 'never mind'.",
    ]


def test_a_blocking_brain_answers_and_stops_when_asked(tmp_path: Path) -> None:
    assert run("blocking.py", tmp_path) == [
        "2 3 5 7 11 13 17 19 23 29 ",
        "stopped: interrupted - quiesced: True - abandoned: ()",
    ]


def test_the_watchman_writes_home_and_wakes_for_an_alarm(tmp_path: Path) -> None:
    assert run("watchman.py", tmp_path) == [
        "done",
        "agent:ann/night all is well round 1: check the windows",
        "done",
        "event alarm.fire (alarm.*)",
    ]


def test_a_game_of_ones_own_is_played_to_its_end(tmp_path: Path) -> None:
    assert run("nim.py", tmp_path) == ["agent:ann/a takes the last stick."]


def test_an_agent_of_the_adk_knows_after_a_restart_what_was_said(tmp_path: Path) -> None:
    assert run("adk_agent/ask.py", tmp_path) == [
        "It costs 12.",
        "I sell nails and rope. You have said 3 things.",
    ]


def test_two_agents_play_and_then_a_person(tmp_path: Path) -> None:
    told = run("tictactoe.py", tmp_path)
    assert told[:9] == [
        "agent:ann/host sees: agent:ann/bold wins with X.",
        "agent:ann/bold sees: agent:ann/bold wins with X.",
        "agent:ann/shy sees: agent:ann/bold wins with X.",
        " X | O | 3",
        "---+---+---",
        " O | X | 6",
        "---+---+---",
        " 7 | 8 | X",
        "refused: cell 5 is taken by X: take one of 1, 2, 3, 4, 6, 7, 8, 9",
    ]
    assert told[9:16:2] == ["agent:bold wins with X.", "     X | O | O", "     4 | X | 6", "     7 | 8 | X"]
    assert told[-2:] == ["agent:bold wins with X.", ""]


def test_five_report_and_one_writes_the_minutes(tmp_path: Path) -> None:
    told = run("standup.py", tmp_path)
    assert told[:5] == [
        f"{n} agent:ann/{name}" for n, name in enumerate(["wren", "robin", "magpie", "heron", "swift"], 1)
    ]
    assert told[5:] == [
        "wren mends the nest.",
        "robin looks for worms.",
        "magpie is blocked: the window is shut.",
        "heron stands in the pond.",
        "swift brings news from the harbour.",
    ]


def test_the_planner_combines_answers_and_continues_without_one(tmp_path: Path) -> None:
    assert run("planner.py", tmp_path) == [
        "train: 09:12 from platform 4",
        "hotel: two nights at the lake",
        "weather: (agent:weather has not answered in time)",
        "told 1 of it",
        "agent:ann/weather: sunny, 21 degrees",
    ]


def test_the_supervisor_consults_the_clerk_and_can_be_interrupted_while_it_waits(tmp_path: Path) -> None:
    assert run("supervisor.py", tmp_path) == [
        "tea: 3 crowns",
        "coffee: 5 crowns",
        "user (complete): gold",
        "agent (interrupted): gold:",
        "user (complete): tea",
        "agent (complete): tea: 3 crowns",
    ]


def test_every_example_is_run_here() -> None:
    tested = Path(__file__).read_text()
    assert all(f'"{path.name}"' in tested for path in EXAMPLES.glob("*.py"))
