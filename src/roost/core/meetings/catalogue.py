"""The games that everyone knows; a meeting names one in its call."""

from __future__ import annotations

from roost.core.meetings.games import Games
from roost.core.meetings.tictactoe import TicTacToe

GAMES: Games = {"tic-tac-toe": TicTacToe()}
