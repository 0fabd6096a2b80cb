"""T3: an answer that was stopped, closed or steered before its first word leaves no empty message behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import roost
from roost import Chunk, Turn
from roost.core.talks.side_channels import Channel, called
from tests.conftest import Open, eventually, everything


async def thinks(turn: Turn) -> AsyncIterator[str | Chunk]:
    """Thinks until it is stopped; `quick` and it answers."""
    if "quick" in turn.text:
        yield "done"
        return
    yield Chunk("hm", "thinking")
    await asyncio.sleep(60)


async def retries(turn: Turn) -> AsyncIterator[str | Chunk]:
    """Waits before it would try again."""
    yield Chunk("The provider asks to wait. ", "commentary")
    await turn.pause(1, at_least=60)


async def acts(turn: Turn) -> AsyncIterator[str | Chunk]:
    """Is stopped while a tool is at work."""
    yield Chunk(called("1", "pay", {"amount": 5}), Channel.TOOLS)
    await asyncio.sleep(60)


async def steered(turn: Turn) -> AsyncIterator[str | Chunk]:
    """Thinks until something is said meanwhile, and answers that."""
    yield Chunk("hm", "thinking")
    while True:
        await asyncio.sleep(0.001)
        if messages := turn.steered():
            yield f"about {messages[0].content}"
            return


def begun(service: roost.AgentService, profile: str) -> str:
    """Start a talk whose answer is open: people see its notes, and no word."""
    talk = service.create_talk_session("ann", profile=profile)
    service.add_message("ann", talk, "go")
    eventually(lambda: len(service.get_messages("ann", talk).messages) == 2)
    return talk


def answers(service: roost.AgentService, talk: str) -> list[tuple[str, str]]:
    """Return the answers that people see."""
    shown = [m for m in everything(service, "ann", talk) if m.sender == "agent" and m.status != "withdrawn"]
    return [(m.content, str(m.status)) for m in shown]


def test_a_stop_while_it_waits_leaves_no_answer(service: Open) -> None:
    one = service({"retries": retries})
    talk = begun(one, "retries")
    one.stop("ann", talk, wait=5)
    assert answers(one, talk) == []
    one.close()
    assert answers(service({"retries": retries}), talk) == []


def test_a_tool_that_was_at_work_when_it_was_stopped_stays(service: Open) -> None:
    one = service({"acts": acts})
    talk = begun(one, "acts")
    one.stop("ann", talk, wait=5)
    assert answers(one, talk) == [("", "interrupted")]
    assert "pay" in everything(one, "ann", talk)[-1].notes[0].text


@pytest.mark.parametrize("brain", [thinks, retries, acts])
def test_closing_before_the_first_word_leaves_only_the_answer_of_the_next_start(
    service: Open, brain: roost.Brain
) -> None:
    async def answer(turn: Turn) -> AsyncIterator[str]:
        yield "done"

    one = service({"brain": brain})
    talk = begun(one, "brain")
    one.close()
    one = service({"brain": answer})
    eventually(lambda: answers(one, talk) == [("done", "complete")])


def test_what_was_thought_before_it_was_steered_stands_beside_the_answer(service: Open) -> None:
    one = service({"steered": steered})
    talk = begun(one, "steered")
    one.add_message("ann", talk, "this", busy="steer")
    eventually(lambda: answers(one, talk) == [("about this", "complete")])
    user, withdrawn, steering, answer = everything(one, "ann", talk)
    assert [user.sender, withdrawn.status, steering.content] == ["user", "withdrawn", "this"]
    assert [(note.channel, note.text) for note in answer.notes] == [("thinking", "hm")]
    one.close()
    assert answers(service({"steered": steered}), talk) == [("about this", "complete")]


@pytest.mark.parametrize("busy", ["interrupt", "rollback"])
def test_a_message_before_the_first_word_leaves_one_answer(service: Open, busy: str) -> None:
    one = service({"thinks": thinks})
    talk = begun(one, "thinks")
    one.add_message("ann", talk, "quick", busy=busy)
    eventually(lambda: answers(one, talk) == [("done", "complete")])
