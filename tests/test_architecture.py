"""The page on the architecture matches the code: its names exist, and its paths are the calls that are made."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import roost
from roost import Turn
from tests.conftest import Open, eventually
from tests.test_shape import ORDERS, RUNTIME, SRC

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FUNCTIONS = sorted(set(re.findall(r"`([a-z_]+(?:\.\w+){2,})`", PAGE)))
ROWS = re.findall(r"^\| `([\w/]+(?:\.py)?)` \|", PAGE, re.MULTILINE)
LISTED = {"", "runtime", "core", "stores/sql", "api", "cli"}
"""Folders whose modules are named too."""
CODE = f"{Path(roost.__file__).parent}/"
COMMIT = "stores.sqlite.SqliteConnection.commit"

Step = tuple[str, str]


def test_the_page_names_functions() -> None:
    assert len(FUNCTIONS) > 50


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_on_the_page_exists(name: str) -> None:
    parts = name.split(".")
    at = next(n for n in range(len(parts), 0, -1) if (SRC / Path(*parts[:n])).with_suffix(".py").exists())
    found: Any = import_module(f"roost.{'.'.join(parts[:at])}")
    for part in parts[at:]:
        found = getattr(found, part)
    assert callable(found)


def test_every_package_is_on_the_page_and_every_row_exists() -> None:
    assert len(ROWS) == len(set(ROWS))
    packages = {str(path.parent.relative_to(SRC)) for path in SRC.rglob("__init__.py")} - {"."}
    modules = {str(path.relative_to(SRC)) for folder in LISTED for path in (SRC / folder).glob("*.py")}
    named = {module for module in modules if not module.endswith("__init__.py")}
    assert set(ROWS) == packages | named


@pytest.mark.parametrize("folder", ["runtime", *(order for order in ORDERS if order != "ports")])
def test_rows_are_in_the_order_of_imports(folder: str) -> None:
    below = [row.removeprefix(f"{folder}/").removesuffix(".py") for row in ROWS if row.startswith(f"{folder}/")]
    rows = [row for row in below if "/" not in row]
    if folder == "runtime":
        assert all(used <= set(rows[: rows.index(name)]) for name, used in RUNTIME.items())
        return
    levels = {name: level for level, names in enumerate(ORDERS[folder]) for name in names.split()}
    known = [levels[row] for row in rows if row in levels]
    assert known == sorted(known)


def test_every_file_that_contributing_names_exists() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## Where a change goes\n", 1)[1]
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*|\w+\.(?:py|md|toml))`", section)
    assert len(named) > 30
    files = set(named) - {"stores/migrations/NNNN_name.sql", "roost.toml"}
    assert [one for one in sorted(files) if not ((ROOT / one).exists() or (SRC / one).exists())] == []


# --- the five paths -------------------------------------------------------------------------------


def path_of(title: str) -> list[Step]:
    """Return the thread and the function of each step of a path, in order."""
    section = PAGE.split(f"### {title}\n", 1)[1].split("\n#", 1)[0]
    steps: list[Step] = []
    for thread, line in re.findall(r"^\d+\. \*(\w+)\*: (.+?)(?=^\d+\. |^$|\Z)", section, re.MULTILINE | re.DOTALL):
        for step in re.findall(r"`([^`]+)`|\*\*commit\*\*", line):
            name = threading.current_thread().name if thread == "caller" else f"roost-{thread}"
            steps.append((name, step or COMMIT))
    return steps


class Calls:
    """Calls of Roost's functions on all threads that are started meanwhile, in order."""

    def __init__(self) -> None:
        self.made: list[Step] = []

    def note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(CODE):
            module = code.co_filename[len(CODE) : -len(".py")].replace("/", ".")
            self.made.append((threading.current_thread().name, f"{module}.{code.co_qualname}"))

    def first_missing(self, path: list[Step]) -> Step | None:
        """Return the first step that was not called after the steps before it."""
        made = iter(list(self.made))
        for thread, function in path:
            if not any(called == function and name.startswith(thread) for name, called in made):
                return thread, function
        return None


@pytest.fixture
def calls() -> Iterator[Calls]:
    noted = Calls()
    threading.setprofile(noted.note)
    yield noted
    threading.setprofile(None)


@contextmanager
def noting(calls: Calls) -> Iterator[None]:
    """Note calls of this thread too, and only those from now on."""
    calls.made.clear()
    before = sys.getprofile()
    sys.setprofile(calls.note)
    try:
        yield
    finally:
        sys.setprofile(before)


def assert_made(calls: Calls, title: str) -> None:
    path = path_of(title)
    assert len(path) > 10
    try:
        eventually(lambda: calls.first_missing(path) is None)
    except pytest.fail.Exception:
        pytest.fail(f"not called in this order: {calls.first_missing(path)}")


async def thanks(turn: Turn) -> AsyncIterator[str]:
    yield f"thanks for {turn.kind}"


def test_a_message_from_a_person(service: Open, calls: Calls) -> None:
    read: Future[None] = Future()

    async def slow(turn: Turn) -> AsyncIterator[str]:
        yield "hello"
        await asyncio.wrap_future(read)
        yield " there"

    it = service({"slow": slow})
    talk = it.create_talk_session("ann")
    with noting(calls):
        it.add_message("ann", talk, "hi")
    eventually(lambda: len(it.get_messages("ann", talk).messages) == 2)
    read.set_result(None)
    assert_made(calls, "A message from a person")


def test_a_mail_that_wakes_a_sleeping_agent(service: Open, calls: Calls) -> None:
    it = service({"thanks": thanks})
    it.agents.create("ann", "d")
    it.agents.sleep("ann", "d", 3600)
    with noting(calls):
        it.mail.send("ann", "agent:d", "hello", "are you there?")
    assert_made(calls, "A mail that wakes a sleeping agent")


def test_a_tick_of_a_schedule(service: Open, calls: Calls) -> None:
    it = service({"thanks": thanks})
    it.agents.create("ann", "d")
    it.schedules.create("ann", "d", "work", at=datetime.now(UTC) + timedelta(seconds=0.2))
    assert_made(calls, "A tick of a schedule")


def test_a_request_between_agents(service: Open, calls: Calls) -> None:
    async def asking(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:e", "how much?") if turn.text == "ask" else "four"

    it = service({"asking": asking})
    for name in ("d", "e"):
        it.agents.create("ann", name)
    it.tasks.wait("ann", it.tasks.send("ann", "agent:e", "wake up"))
    calls.made.clear()
    it.tasks.wait("ann", it.tasks.send("ann", "agent:d", "ask"))
    assert_made(calls, "A request between agents")


def test_words_in_a_meeting(service: Open, calls: Calls) -> None:
    it = service({"thanks": thanks})
    it.agents.create("ann", "d")
    meeting = it.meetings.call("ann", "the roof", required=["agent:d"])
    eventually(lambda: it.meetings.view("ann", meeting).phase == "running")
    with noting(calls):
        it.meetings.say("ann", meeting, "it leaks")
    assert_made(calls, "Words in a meeting")
