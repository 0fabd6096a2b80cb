"""The author of a brain finds the traceback of a failed run in its record."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import roost
from roost import Chunk, Turn
from roost.core.failures import tracebacks
from roost.core.values.secrets import HIDDEN
from tests.conftest import Open, settled

HERE = "test_tracebacks.py"


def divide(by: int) -> float:
    return 1 / by


async def divides(turn: Turn) -> AsyncIterator[str]:
    yield "so far "
    yield str(divide(0))


def divides_plainly(turn: roost.PlainTurn) -> Iterator[str]:
    yield "so far "
    yield str(divide(0))


async def chains(turn: Turn) -> AsyncIterator[str]:
    try:
        divide(0)
    except ZeroDivisionError as error:
        raise LookupError("no quotient") from error
    yield ""


async def groups(turn: Turn) -> AsyncIterator[str]:
    async def fail(number: int) -> None:
        raise ValueError(f"number {number}")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fail(1))
        tasks.create_task(fail(2))
    yield ""


async def exits(turn: Turn) -> AsyncIterator[str]:
    if turn.text:
        raise SystemExit("leave")
    yield ""


def exits_plainly(turn: roost.PlainTurn) -> Iterator[str]:
    if turn.text:
        raise SystemExit("leave")
    yield ""


async def asks_nobody(turn: Turn) -> AsyncIterator[str]:
    await turn.ask("agent:nobody", "well?")
    yield ""


async def keeps_a_set(turn: Turn) -> AsyncIterator[str]:
    turn.state["seen"] = {1}
    yield "seen"


def run_of(service: roost.AgentService, profile: str, text: str = "go") -> tuple[roost.Message, roost.RunEntry]:
    """The failed answer of a new talk, and the record of its run."""
    talk = service.create_talk_session("ann", profile=profile)
    service.add_message("ann", talk, text)
    answer = settled(service, "ann", talk)[-1]
    [run] = service.runs.list("ann", talk=talk)
    return answer, service.runs.get("ann", run.run_id)


@pytest.mark.parametrize("brain", [divides, divides_plainly])
def test_the_record_of_a_failed_run_has_the_frames_of_its_brain_and_no_others(
    service: Open, brain: Callable[..., Any]
) -> None:
    answer, entry = run_of(service({"brain": brain}), "brain")
    assert entry.traceback is not None
    assert re.findall(r'File ".*?(\w+\.py)", line \d+, in (\w+)', entry.traceback) == [
        (HERE, brain.__name__),
        (HERE, "divide"),
    ]
    assert "return 1 / by" in entry.traceback
    assert entry.traceback.endswith("\nZeroDivisionError: division by zero")
    assert answer.error
    assert "ZeroDivisionError" not in answer.error


def test_a_run_that_is_done_has_no_traceback(service: Open) -> None:
    _, entry = run_of(service(), "echo")
    assert (entry.run.outcome, entry.traceback) == ("done", None)


def test_chained_exceptions_and_groups_are_kept(service: Open) -> None:
    opened = service({"chains": chains, "groups": groups})
    chained = run_of(opened, "chains")[1].traceback or ""
    assert (
        chained.index("ZeroDivisionError: division by zero") < chained.index("direct cause") < chained.index("Lookup")
    )
    grouped = run_of(opened, "groups")[1].traceback or ""
    assert "ValueError: number 1" in grouped
    assert "ValueError: number 2" in grouped
    assert "thinking" not in chained + grouped


@pytest.mark.parametrize("brain", [exits, exits_plainly])
def test_what_may_not_leave_the_brain_is_kept_as_the_cause(service: Open, brain: Callable[..., Any]) -> None:
    _, entry = run_of(service({"brain": brain}), "brain")
    assert f", in {brain.__name__}\n" in (entry.traceback or "")
    assert "SystemExit: leave" in (entry.traceback or "")


def test_a_refusal_by_roost_shows_the_line_that_asked(service: Open) -> None:
    opened = service({"asks": asks_nobody})
    opened.agents.create("ann", "one", profile="asks", max_attempts=1)
    opened.tasks.wait("ann", opened.tasks.send("ann", "one", "go"), timeout=10)
    [run] = opened.runs.list("ann", agent="one")
    found = opened.runs.get("ann", run.run_id).traceback or ""
    assert 'await turn.ask("agent:nobody", "well?")' in found
    assert "roost/runtime" not in found


def test_each_failed_try_of_a_task_has_its_traceback(service: Open) -> None:
    opened = service({"divides": divides})
    opened.agents.create("ann", "one", profile="divides", max_attempts=2, retry_delay=0.001)
    opened.tasks.wait("ann", opened.tasks.send("ann", "one", "go"), timeout=10)
    runs = opened.runs.list("ann", agent="one")
    assert len(runs) == 2
    assert all("in divide\n" in (opened.runs.get("ann", run.run_id).traceback or "") for run in runs)


def test_a_state_that_cannot_be_kept_is_explained(service: Open) -> None:
    _, entry = run_of(service({"keeps": keeps_a_set}), "keeps")
    assert "turn.state must be a JSON value" in (entry.traceback or "")


def test_a_failed_run_is_replayed_as_it_was(service: Open) -> None:
    opened = service({"divides": divides})
    _, entry = run_of(opened, "divides")
    assert opened.runs.replay("ann", entry.run.run_id).is_identical
    assert opened.runs.get("ann", entry.run.run_id) == entry


def test_it_has_no_secrets_and_what_no_store_keeps(service: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE_API_KEY", "planted-0123456789")

    async def leaks(turn: Turn) -> AsyncIterator[str]:
        if turn.text:
            raise RuntimeError("cannot use planted-0123456789 \0 \ud800 end")
        yield ""

    found = run_of(service({"leaks": leaks}), "leaks")[1].traceback or ""
    assert "planted" not in found
    assert found.endswith(f"RuntimeError: cannot use {HIDDEN} \ufffd \ufffd end")


def test_it_is_bounded(service: Open) -> None:
    async def shouts(turn: Turn) -> AsyncIterator[str]:
        if turn.text:
            raise RuntimeError("x" * 1_000_000 + " the end")
        yield ""

    async def falls(turn: Turn) -> AsyncIterator[str]:
        def one(depth: int) -> int:
            return other(depth + 1)

        def other(depth: int) -> int:
            return one(depth + 1)

        yield str(one(0))

    opened = service({"shouts": shouts, "falls": falls})
    for profile, end in (("shouts", "x the end"), ("falls", "maximum recursion depth exceeded")):
        found = run_of(opened, profile)[1].traceback or ""
        assert len(found) <= tracebacks.MOST
        assert f", in {profile}\n" in found
        assert found.endswith(end)
        assert "characters left out" in found


def test_an_exception_that_cannot_be_described_is_named(service: Open) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def odd(turn: Turn) -> AsyncIterator[str]:
        if turn.text:
            raise Odd
        yield ""

    assert "Odd" in (run_of(service({"odd": odd}), "odd")[1].traceback or "")


def test_the_machinery_of_asyncio_is_left_out(service: Open) -> None:
    found = run_of(service({"groups": groups}), "groups")[1].traceback or ""
    assert "taskgroups.py" not in found
    assert f'{HERE}", line' in found


# --- what a brain yields ---------------------------------------------------------------------------


async def yields_a_number(turn: Turn) -> AsyncIterator[Any]:
    yield "so far "
    yield 42  # here


def yields_bytes(turn: roost.PlainTurn) -> Iterator[Any]:
    yield from inner()


def inner() -> Iterator[Any]:
    yield b"raw"  # here


async def yields_an_odd_chunk(turn: Turn) -> AsyncIterator[Any]:
    yield Chunk(None)  # type: ignore[arg-type]  # here


async def yields_aside(turn: Turn) -> AsyncIterator[Any]:
    yield Chunk("well", channel="nowhere")  # here


@pytest.mark.parametrize(
    ("brain", "problem"),
    [
        (yields_a_number, "yielded int"),
        (yields_bytes, "yielded bytes"),
        (yields_an_odd_chunk, "yielded a Chunk whose text is NoneType"),
        (yields_aside, "yielded a Chunk for the channel 'nowhere'"),
    ],
)
def test_what_is_no_text_is_named_with_its_type_and_the_line_that_yielded_it(
    service: Open, brain: Callable[..., Any], problem: str
) -> None:
    answer, entry = run_of(service({"brain": brain}), "brain")
    assert entry.traceback is not None
    assert f"the brain {problem}" in entry.traceback
    place, line = re.findall(r" at (\S+):(\d+): yield str or roost.Chunk", entry.traceback)[0]
    assert place == __file__
    with open(place, encoding="utf-8") as file:
        assert "# here" in file.readlines()[int(line) - 1]
    assert "# here" in entry.traceback
    assert answer.error
    assert "yielded" not in answer.error
