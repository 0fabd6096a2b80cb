"""A program that is killed: two agents play tic-tac-toe, slowly, and a third is the host.

    python driver_game.py DATABASE

It tells how many moves were made, whenever that changes, until it is killed.
"""

from __future__ import annotations

import sys

import roost

LIMITS = roost.Limits(drain=0.2, stop_patience=0.2)
PACE = 0.04
SEED = 3
NAMES = {"owl": "demo-host", "crow": "demo-player", "finch": "demo-player"}


def open_game(database: str) -> tuple[roost.AgentService, str]:
    """The service, and the one game that was ever called on it."""
    service = roost.open(database, limits=LIMITS)
    if not service.agents.list("ann"):
        for name, profile in NAMES.items():
            service.agents.create("ann", name, profile=profile, max_attempts=1_000)
    for name in NAMES:
        service.agents.set_state("ann", name, {"pace": PACE, "seed": SEED})
    players = ["agent:crow", "agent:finch"]
    game = service.meetings.call(
        "ann", "A game", required=players, game="tic-tac-toe", setting={"players": players}, by="agent:owl", key="once"
    )
    return service, game


if __name__ == "__main__":
    opened, meeting = open_game(sys.argv[1])
    for view in opened.meetings.watch("ann", meeting, seen_by="agent:owl"):
        print(view.moves, flush=True)
