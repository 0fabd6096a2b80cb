"""Tic-tac-toe, first between two agents and then against a person; a third agent is the host."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator

import roost

PERSON = "user:ann"


def liking(*cells: int) -> roost.Brain:
    """Return a player that takes the first free cell of these, or else of all."""

    async def player(turn: roost.Turn) -> AsyncIterator[str]:
        meeting = turn.meeting
        if turn.kind == "meeting" and meeting.my_move:
            cell = next(cell for cell in (*cells, *range(1, 10)) if not meeting.state["board"][cell - 1])
            await meeting.move({"cell": cell})
            yield f"I take {cell}."

    return player


async def host(turn: roost.Turn) -> AsyncIterator[str]:
    """Speak when the meeting opens, and again when the game is over."""
    meeting = turn.meeting
    if meeting.why == "opening":
        yield "Welcome."
    elif meeting.why == "over":
        result = meeting.view.outcome.text if meeting.view.outcome else "Nobody wins."
        await meeting.say(result)  # sent to all …
        await meeting.end(result)  # … and stored in the minutes


def call(service: roost.AgentService, x: str, o: str) -> str:
    return service.meetings.call(
        "ann", f"{x} against {o}", required=[x, o], game="tic-tac-toe", setting={"players": [x, o]}, by="agent:host"
    )


def agents_play(service: roost.AgentService) -> None:
    game = call(service, "agent:bold", "agent:shy")
    for name in ("agent:host", "agent:bold", "agent:shy"):  # each has its own view
        *_, over = service.meetings.watch("ann", game, seen_by=name)
        print(over.seen_by, "sees:", over.outcome)
    print(service.meetings.view("ann", game).board)


def a_person_plays(service: roost.AgentService) -> None:
    game = call(service, "agent:bold", PERSON)
    service.meetings.join("ann", game)
    mine = iter([5, 2, 3, 7])  # a real person would look at view.board
    for view in service.meetings.watch("ann", game, seen_by=PERSON):
        while view.mover == PERSON:
            try:
                view = service.meetings.move("ann", game, {"cell": next(mine)})
            except roost.Forbidden as refused:
                print("refused:", refused)
    print(service.meetings.minutes("ann", game).partition("## Result\n\n")[2])


def main() -> None:
    brains: dict[str, roost.Brain] = {"host": host, "bold": liking(5, 1, 9, 3), "shy": liking(2, 4, 6, 8)}
    with (
        tempfile.TemporaryDirectory() as folder,
        roost.open(f"sqlite:///{folder}/games.db", brains=brains) as service,
    ):
        for name in brains:
            service.agents.create("ann", name, profile=name)
        agents_play(service)
        a_person_plays(service)


if __name__ == "__main__":
    main()
