"""M8, A10: a game in a process that is killed repeatedly continues, and ends the same in every view."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from roost.core.meetings.games.tictactoe import TicTacToe
from roost.demos.brains import chosen
from tests.conftest import ENVIRONMENT
from tests.forks import Popen
from tests.journeys.driver_game import NAMES, SEED, open_game

DRIVER = Path(__file__).with_name("driver_game.py")


def run_and_kill(database: str, after: int) -> None:
    """Let it play until this number of moves was made."""
    child = Popen[bytes]([sys.executable, str(DRIVER), database], env=ENVIRONMENT, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert any(int(line) >= after for line in child.stdout)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()


def as_it_must_end() -> tuple[str, str]:
    """The board and the outcome: both players think of nothing but the board and their seed."""
    game = TicTacToe()
    state = game.initial({"players": ["agent:ann/crow", "agent:ann/finch"]})
    while (outcome := game.outcome(state)) is None:
        cell = chosen(state["board"], state["next"], SEED)
        state = game.apply(state, game.mover(state) or "", {"cell": cell})
    return game.drawn(state), outcome.text


@pytest.mark.timeout(60)
def test_a_game_killed_again_and_again_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'roost.db'}"
    for moves in (0, 2, 5):
        run_and_kill(database, after=moves)
    service, game = open_game(database)
    with service:
        views = []
        for name in NAMES:
            *_, over = service.meetings.watch("ann", game, seen_by=f"agent:{name}")
            views.append(over)
    board, outcome = as_it_must_end()
    assert {(one.phase, one.board, one.outcome, one.minutes) for one in views} == {("ended", board, outcome, outcome)}
    assert {one.moves for one in views} == {sum(mark in "XO" for mark in board)}
    for view in views:
        assert [word.sender for word in view.words] == ["agent:ann/owl"] * 2
        assert view.refused == ()
