"""A custom game: two agents play nim. The player who takes the last stick wins."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from typing import Any

import roost


class Nim(roost.Game):
    """Rules of nim: the setting is `{"players": [first, second], "sticks": 10}`; a move is `{"take": 2}`, 1 to 3."""

    def initial(self, setting: Any) -> Any:
        match setting:
            case {"players": [str(first), str(second)], "sticks": int(sticks)} if first != second and sticks > 0:
                return {"players": [first, second], "sticks": sticks, "next": 0}
        raise roost.Invalid("nim needs two players and a number of sticks")

    def apply(self, state: Any, author: str, move: Any) -> Any:
        if author != self.mover(state):
            raise roost.Invalid(f"it is the turn of {self.mover(state)}")
        match move:
            case {"take": int(count)} if 1 <= count <= min(3, state["sticks"]):
                return {**state, "sticks": state["sticks"] - count, "next": 1 - state["next"]}
        raise roost.Invalid(f"take from 1 to {min(3, state['sticks'])} sticks")

    def outcome(self, state: Any) -> roost.Outcome | None:
        if state["sticks"]:
            return None
        winner = state["players"][1 - state["next"]]
        return roost.Outcome(f"{winner} takes the last stick.", winner)

    def mover(self, state: Any) -> str | None:
        return str(state["players"][state["next"]]) if state["sticks"] else None

    def drawn(self, state: Any) -> str:
        return "|" * int(state["sticks"])


async def player(turn: roost.Turn) -> AsyncIterator[str]:
    if turn.meeting.my_move:
        sticks = turn.meeting.state["sticks"]
        await turn.meeting.move({"take": sticks % 4 or 1})
    yield ""


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        roost.open(f"sqlite:///{folder}/nim.db", brains={"player": player}, games={"nim": Nim()}) as service,
    ):
        service.agents.create_many("ann", ["a", "b"], profile="player")
        players = ["agent:a", "agent:b"]
        setting = {"players": players, "sticks": 10}
        meeting = service.meetings.call("ann", "Nim", required=players, game="nim", setting=setting)
        for view in service.meetings.watch("ann", meeting):
            if view.outcome:
                print(view.outcome)
                break


if __name__ == "__main__":
    main()
