"""Requests to a chat model: whatever ends an answer ends the request to the model too, and at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import Chunk, Turn
from roost.brains.chat.dialogue import ModelAnswer
from roost.brains.chat.tool_loop import Piece, ToolLoop
from roost.brains.gguf import process
from tests.conftest import QUICK, settled


class Queued:
    """Model that reports a position in its queue, and nothing else."""

    name = "queued"
    window = 1_000
    takes_tools = False
    sums_up = True

    def __init__(self) -> None:
        self.left_by: list[asyncio.Task[Any] | None] = []

    async def ask(self, *asked: Any, **options: Any) -> AsyncGenerator[Piece | ModelAnswer]:
        try:
            yield Chunk("1 before you", "waiting")
            yield ModelAnswer("so")
        finally:
            self.left_by.append(asyncio.current_task())

    def recorded(self, answer: ModelAnswer) -> Any:
        return answer.text

    def recalled(self, recorded: Any) -> Iterator[Piece | ModelAnswer]:
        yield ModelAnswer(recorded)


def test_an_answer_that_is_left_leaves_the_model_at_once_also_while_it_is_asked_to_sum_up(tmp_path: Path) -> None:
    model = Queued()

    async def brain(turn: Turn) -> AsyncIterator[str]:
        if len(turn.history) < 4:
            yield "long " * 2_000
            return
        answer = ToolLoop(turn, model).answer()
        assert isinstance(piece := await anext(answer), Chunk)
        assert piece.channel == "waiting"
        await answer.aclose()
        yield "here" if model.left_by == [asyncio.current_task()] else "elsewhere, or not yet"

    with roost.open(f"sqlite:///{tmp_path}/a.db", brains={"brain": brain}, limits=QUICK) as one:
        talk = one.create_talk_session("ann", profile="brain")
        for text in ("one", "two", "three"):
            one.add_message("ann", talk, text)
            settled(one, "ann", talk)
        assert one.get_messages("ann", talk).messages[-1].content == "here"


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[process.Process, int]]:
    """The process of a model, and where it is asked."""
    (given, asked), output = os.pipe(), os.open(os.devnull, os.O_WRONLY)
    monkeypatch.setattr(process, "INPUT", given)
    yield process.Process(output), asked
    for one in (given, asked, output):
        os.close(one)


def test_a_stop_that_comes_together_with_its_question_stops_that_and_no_other(
    heard: tuple[process.Process, int],
) -> None:
    model, asked = heard
    os.write(asked, b'{"n": 1}\nstop\n{"n": 2}\n')
    questions = model.questions()
    assert next(questions) == {"n": 1}
    assert model.hear({})
    assert next(questions) == {"n": 2}
    assert not model.hear({})
    os.write(asked, b'stop\n{"n": 3}\n')
    assert model.hear({})
    assert next(questions) == {"n": 3}
    assert not model.hear({})
