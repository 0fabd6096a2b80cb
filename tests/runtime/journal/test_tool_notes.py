"""Tool calls of a brain are shown with its answer, whatever kind of brain it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import roost
from roost import Message, PlainTurn, ToolFailed, Turn
from roost.core.talks.side_channels import Channel, calls

Call = tuple[str, object, str | None, bool]


@roost.tool
async def price(sku: str) -> str:
    if sku == "gold":
        raise ValueError("not for sale")
    return "4.25"


async def on_the_loop(turn: Turn) -> AsyncIterator[str]:
    yield await turn.call_tool("price", {"sku": "tea"})
    try:
        await turn.call_tool("price", {"sku": "gold"})
    except ToolFailed:
        yield " and none"


def in_a_thread(turn: PlainTurn) -> Iterator[str]:
    yield turn.call_tool("price", {"sku": "tea"})
    try:
        turn.call_tool("price", {"sku": "gold"})
    except ToolFailed:
        yield " and none"


async def together(turn: Turn) -> AsyncIterator[str]:
    await asyncio.gather(*(turn.call_tool("price", {"sku": sku}) for sku in ("tea", "salt")))
    yield "both"


async def shows_them_itself(turn: Turn) -> AsyncIterator[str]:
    yield await turn.call_tool("price", {"sku": "tea"}, call_id="mine")


def answer(tmp_path: Path, brain: roost.Brain) -> Message:
    with roost.open(f"sqlite:///{tmp_path}/a.db", brains={"it": brain}, tools=[price]) as service:
        talk = service.create_talk_session("ann", profile="it")
        service.add_message("ann", talk, "go")
        for _ in service.stream_messages("ann", talk):
            pass
        return service.get_messages("ann", talk).messages[-1]


def shown(message: Message) -> list[Call]:
    found = [call for note in message.notes if note.channel == Channel.TOOLS for call in calls(note.text)]
    return [(call.tool, call.arguments, call.result, call.ok) for call in found]


@pytest.mark.parametrize("brain", [on_the_loop, in_a_thread])
def test_calls_and_results_are_notes_of_the_answer(tmp_path: Path, brain: roost.Brain) -> None:
    message = answer(tmp_path, brain)
    failed = "price has failed: ValueError: not for sale"
    assert message.content == "4.25 and none"
    assert shown(message) == [("price", {"sku": "tea"}, "4.25", True), ("price", {"sku": "gold"}, failed, False)]


def test_calls_side_by_side_have_each_its_own_result(tmp_path: Path) -> None:
    found = shown(answer(tmp_path, together))
    assert found == [("price", {"sku": "tea"}, "4.25", True), ("price", {"sku": "salt"}, "4.25", True)]


def test_a_brain_that_passes_an_id_shows_its_calls_itself(tmp_path: Path) -> None:
    message = answer(tmp_path, shows_them_itself)
    assert (message.content, message.notes) == ("4.25", ())


def test_a_call_is_shown_while_it_runs(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()

    @roost.tool
    def waits() -> str:
        begun.set()
        go.wait(10)
        return "done"

    async def calling(turn: Turn) -> AsyncIterator[str]:
        yield await turn.call_tool("waits", {})

    with roost.open(f"sqlite:///{tmp_path}/a.db", brains={"it": calling}, tools=[waits]) as service:
        talk = service.create_talk_session("ann", profile="it")
        service.add_message("ann", talk, "go")
        seen = []
        for change in service.stream_messages("ann", talk):
            seen += [call.result for note in change.notes for call in calls(note.text)]
            if begun.wait(10):
                go.set()
        assert seen[0] is None
        assert shown(service.get_messages("ann", talk).messages[-1]) == [("waits", {}, "done", True)]
