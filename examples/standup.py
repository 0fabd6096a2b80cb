"""A meeting of five agents: each reports when it has the floor, and the creator writes the minutes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator

import roost

DOING = {
    "wren": "mends the nest",
    "robin": "looks for worms",
    "magpie": "is blocked: the window is shut",
    "heron": "stands in the pond",
    "swift": "brings news from the harbour",
}


async def reporter(turn: roost.Turn) -> AsyncIterator[str]:
    meeting = turn.meeting
    if turn.kind != "meeting" or not meeting.may_speak:
        return
    words = meeting.view.words
    if meeting.is_chair and words:  # everyone has spoken
        await meeting.end("\n".join(word.text for word in words))
    else:
        yield f"{turn.agent_id} {DOING[str(turn.agent_id)]}."


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        roost.open(f"sqlite:///{folder}/standup.db", brains={"reporter": reporter}) as service,
    ):
        service.agents.create_many("ann", list(DOING), profile="reporter")
        chair, *others = (f"agent:{name}" for name in DOING)
        meeting = service.meetings.call("ann", "Standup", required=others, floor="round_robin", by=chair)
        *_, over = service.meetings.watch("ann", meeting)
        for word in over.words:
            print(word.number, word.sender)
        print(over.minutes)


if __name__ == "__main__":
    main()
