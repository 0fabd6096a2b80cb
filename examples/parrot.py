"""A brain, a talk, and its answer while it is written. Run it twice: the earlier talks are still there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import roost


async def parrot(turn: roost.Turn) -> AsyncIterator[str]:
    for word in turn.text.split():
        yield word + " "


def main() -> None:
    with roost.open("sqlite:///parrot.db", brains={"parrot": parrot}) as service:
        talk = service.create_talk_session("ann", profile="parrot")
        service.add_message("ann", talk, "hello there")
        for change in service.stream_messages("ann", talk):
            if change.message.sender == "agent":
                print(change.text, end="", flush=True)
        print()
        print("talks so far:", len(service.list_sessions("ann")))


if __name__ == "__main__":
    main()
