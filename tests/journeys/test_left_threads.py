"""T4, T13: a function that blocks is named when it is left, holds up nobody, and does not keep the program."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

import roost
from tests.conftest import ENVIRONMENT, Open, eventually, settled

pytestmark = pytest.mark.timeout(60)


class Gate:
    """A function that blocks until it may end."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.begun = 0

    def block(self) -> str:
        self.begun += 1
        self.may_end.wait(30)
        return "ended"


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.may_end.set()


def in_step(gate: Gate) -> roost.Brain:
    async def brain(turn: roost.Turn) -> AsyncIterator[str]:
        yield await turn.step("wait", gate.block)

    return brain


def in_tool(gate: Gate) -> roost.Brain:
    async def brain(turn: roost.Turn) -> AsyncIterator[str]:
        yield await turn.call_tool("block", {})

    return brain


def in_brain(gate: Gate) -> roost.Brain:
    def brain(turn: roost.Turn) -> Iterator[str]:
        yield gate.block()

    return brain


@pytest.mark.parametrize(
    ("make", "name"), [(in_step, "step wait"), (in_tool, "tool block"), (in_brain, "brain helper")]
)
def test_what_blocks_is_named_in_the_receipt_and_counted_until_it_returns(
    service: Open, gate: Gate, make: Callable[[Gate], roost.Brain], name: str
) -> None:
    @roost.tool
    def block() -> str:
        """Block."""
        return gate.block()

    roosted = service({"helper": make(gate)}, tools=[block])
    talk = roosted.create_talk_session("ann", profile="helper")
    roosted.add_message("ann", talk, "go")
    eventually(lambda: gate.begun)
    assert roosted.stop("ann", talk, wait=5).abandoned == (name,)
    assert roosted.health().abandoned == 1
    gate.may_end.set()
    eventually(lambda: roosted.health().abandoned == 0)


def test_functions_on_the_loops_executor_take_no_place_from_others(service: Open, gate: Gate) -> None:
    async def helper(turn: roost.Turn) -> AsyncIterator[str]:
        yield await asyncio.to_thread(gate.block if turn.text == "block" else lambda: "done")

    limits = roost.Limits(talk_workers=1, drain=0.2, stop_patience=0.2)
    roosted = service({"helper": helper}, limits=limits)
    for number in range(40):  # more than any default pool has
        talk = roosted.create_talk_session("ann", profile="helper")
        roosted.add_message("ann", talk, "block")
        eventually(lambda number=number: gate.begun > number)  # type: ignore[misc]
        roosted.stop("ann", talk)
    talk = roosted.create_talk_session("ann", profile="helper")
    roosted.add_message("ann", talk, "go")
    assert settled(roosted, "ann", talk)[-1].content == "done"


def test_with_too_many_functions_left_behind_none_is_begun_until_some_return(service: Open, gate: Gate) -> None:
    async def helper(turn: roost.Turn) -> AsyncIterator[str]:
        yield await turn.step("wait", gate.block if turn.text == "block" else lambda: "done")

    limits = roost.Limits(drain=0.2, stop_patience=0.2, blocked_functions=2)
    roosted = service({"helper": helper}, limits=limits)
    for number in range(2):
        talk = roosted.create_talk_session("ann", profile="helper")
        roosted.add_message("ann", talk, "block")
        eventually(lambda number=number: gate.begun > number)  # type: ignore[misc]
        roosted.stop("ann", talk, wait=5)
    assert "blocked_functions = 2" in (roosted.health().problem or "")
    talk = roosted.create_talk_session("ann", profile="helper")
    roosted.add_message("ann", talk, "go")
    assert settled(roosted, "ann", talk)[-1].status == "failed"
    gate.may_end.set()
    eventually(lambda: roosted.health().problem is None)
    roosted.add_message("ann", talk, "go")
    assert settled(roosted, "ann", talk)[-1].content == "done"


PROGRAM = """
import asyncio, threading, roost

begun = threading.Event()

def block():
    begun.set()
    threading.Event().wait(60)

async def helper(turn):
    await {call}
    yield "ended"

limits = roost.Limits(drain=0.2, stop_patience=0.2)
with roost.open("sqlite:///{path}", brains={{"helper": helper}}, limits=limits) as service:
    talk = service.create_talk_session("ann", profile="helper")
    service.add_message("ann", talk, "go")
    assert begun.wait(20)
print("closed", flush=True)
"""


@pytest.mark.parametrize("call", ["asyncio.to_thread(block)", 'turn.step("wait", block)'])
def test_a_program_ends_although_a_function_blocks(tmp_path: Path, call: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(path=tmp_path / "roost.db", call=call)]
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=40)
    assert (ended.returncode, ended.stdout) == (0, "closed\n"), ended.stderr
