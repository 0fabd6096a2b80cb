"""A program that is killed at each step of its runs: python driver_tools.py FOLDER alone|among.

Alone, its agent answers a task and a talk; among others a message and what is said in a meeting, each with three calls
of tools. A tool acts by writing its key into the ledger. Whatever
point is passed for the first time, in any life, is the last thing that this life does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import roost

LIMITS = roost.Limits(attempts=1_000, checkpoint_every=0.01)
TOOLS = ("one", "two", "three")


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = folder / "ledger"
        self.both = threading.Barrier(2)
        self.meanwhile: Callable[[str], object] = str
        """Called in a meeting while a tool acts."""

    def passes(self, point: str) -> None:
        """Die here, the first time; if the other run comes to such a point too, together."""
        mark = self.folder / f"passed-{point.replace(' ', '-')}"
        if not mark.exists():
            mark.touch()
            with contextlib.suppress(threading.BrokenBarrierError):
                self.both.wait(0.3)
            os.kill(os.getpid(), signal.SIGKILL)

    def acted(self, key: str) -> str | None:
        """Return the entry of the ledger with this key."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return next((line.split()[1] for line in lines if line.split()[0] == key), None)

    def tool(self, name: str) -> roost.Tool:
        @roost.tool(name=name, check=self.acted)
        def act(turn: roost.Turn, word: str) -> str:
            with self.ledger.open("a") as ledger:
                ledger.write(f"{turn.step_key} {turn.kind}:{name}:{word}\n")
                ledger.flush()
                os.fsync(ledger.fileno())
            if turn.kind == "meeting":
                self.meanwhile(name)
            self.passes(f"{turn.kind} {name} acted")
            return f"{turn.kind}:{name}:{word}"

        return act

    async def brain(self, turn: roost.Turn) -> AsyncIterator[str]:
        for name in TOOLS if "go" in turn.text else ():
            yield await turn.call_tool(name, {"word": turn.text}) + " "
            self.passes(f"{turn.kind} {name} returned")

    async def teller(self, turn: roost.Turn) -> AsyncIterator[str]:
        await turn.send("agent:e", turn.text)
        yield ""


def alone(service: roost.AgentService) -> None:
    task = service.tasks.send("ann", "d", "go", key="go")
    talks = service.list_sessions("ann")
    talk = talks[0].talk_session_id if talks else service.create_talk_session("ann", profile="brain")
    service.add_message("ann", talk, "go", key="go")
    over = service.tasks.wait("ann", task)
    for _ in service.stream_messages("ann", talk):
        pass
    answer = service.get_messages("ann", talk).messages[-1]
    print(over.status, over.result)
    print(answer.status, answer.content)


def among(service: roost.AgentService, scene: Scene) -> None:
    service.tasks.send("ann", "a", "go", key="go")
    meeting = service.meetings.call("ann", "notes", required=["agent:d"], key="once")

    def more(name: str) -> None:
        """The meeting continues, and the agent hears it."""
        text = f"while {name} acts"
        service.meetings.say("ann", meeting, text, key=text)
        wait_until(lambda: text in (w.text for w in service.meetings.view("ann", meeting, seen_by="agent:d").words))

    scene.meanwhile = more
    wait_until(lambda: service.meetings.view("ann", meeting).phase == "running")
    service.meetings.say("ann", meeting, "go", key="go")
    for name in ("e", "d"):
        wait_until(partial(service.runs.list, "ann", agent=name))
        run = service.runs.list("ann", agent=name)[-1]
        replay = service.runs.replay("ann", run.run_id)
        print(run.outcome, replay.recorded_text, replay.diff or "identical")


def wait_until(so: Callable[[], object]) -> None:
    while not so():
        threading.Event().wait(0.01)


def main(folder: Path, how: str) -> None:
    scene = Scene(folder)
    brains: dict[str, roost.Brain] = {"brain": scene.brain, "teller": scene.teller}
    tools = [scene.tool(name) for name in TOOLS]
    with roost.open(f"sqlite:///{folder}/roost.db", brains=brains, tools=tools, limits=LIMITS) as service:
        if not service.agents.list("ann"):
            service.agents.create("ann", "a", profile="teller", max_attempts=1_000)
            service.agents.create_many("ann", ["d", "e"], profile="brain", max_attempts=1_000)
        if how == "alone":
            alone(service)
        else:
            among(service, scene)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
