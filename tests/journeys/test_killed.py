"""T5, T7, T11, A10: `kill -9` at any moment loses nothing that was acknowledged, and doubles nothing."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

import roost
from roost.stores import migrations
from tests.conftest import ENVIRONMENT, QUICK, eventually, everything, settled
from tests.forks import Popen
from tests.journeys.driver_killed import tokens

MIGRATIONS = len(migrations.steps())
"""Each is a commit of its own."""
DRIVER = Path(__file__).with_name("driver_killed.py")
SPOKEN = re.compile(r"(?:([0-9a-z]{8}) )(?:\1 )*(?:answers [0-9.,]+)?")
"""One run's token, over and over, and perhaps its end: a text of two runs does not look like this."""


@dataclass(frozen=True)
class Scene:
    database: str
    log: Path

    def start(self, seed: int, *more: str) -> subprocess.Popen[bytes]:
        return Popen[bytes](
            [sys.executable, str(DRIVER), self.database, str(self.log), str(seed), *more],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
        )

    def noted(self) -> list[list[str]]:
        """The acknowledgements; a last line that was cut by the kill was none."""
        if not self.log.exists():
            return []
        return [line[:-1].split("\t") for line in self.log.read_text().splitlines(keepends=True) if line[-1] == "\n"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "acknowledged")


def check(scene: Scene) -> None:
    """Open what is left; everything acknowledged must be there once, and be answered."""
    with roost.open(scene.database, brains={"tokens": tokens}, limits=QUICK) as service:
        found = {t.talk_session_id: settled(service, "ann", t.talk_session_id) for t in service.list_sessions("ann")}
        for whole in found.values():
            check_talk(whole)
        for _, talk, seq, text in (line for line in scene.noted() if line[0] == "message"):
            same = [m for m in found[talk] if m.content == text]
            assert [(m.seq, m.sender) for m in same] == [(int(seq), "user")]
        for _, talk, text in (line for line in scene.noted() if line[0] == "answered"):
            assert any(text in answered(m) for m in found[talk] if m.status == "complete"), text
        assert not any(t.running for t in service.list_sessions("ann"))


def answered(message: roost.Message) -> list[str]:
    """Return the questions that a whole answer says it answers."""
    return message.content.partition("answers ")[2].split(",") if message.sender == "agent" else []


def check_talk(whole: tuple[roost.Message, ...]) -> None:
    assert [m.seq for m in whole] == list(range(1, len(whole) + 1))
    assert {m.status for m in whole} <= {"complete", "interrupted", "withdrawn"}
    said = [m for m in whole if m.sender == "agent" and m.status != "withdrawn"]
    for message in said:
        assert SPOKEN.fullmatch(message.content), message.content
    runs = [m.run_id for m in said]
    assert len(set(runs)) == len(runs)
    if whole:
        assert whole[-1].sender == "agent", "the last message was never answered"
        assert whole[-1].status == "complete"
        last = [m.content for m in whole if m.sender == "user"][-1]
        assert last in answered(whole[-1])
    assert all(answered(m) != [""] for m in said if m.status == "complete")


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 10))])
def test_random_kills_in_a_loop_lose_and_double_nothing(scene: Scene, seed: int) -> None:
    luck = random.Random(seed)
    for round_ in range(8):
        before = len(scene.noted())
        child = scene.start(seed * 100 + round_)
        eventually(lambda before=before: len(scene.noted()) > before)  # type: ignore[misc]
        threading.Event().wait(luck.random() * 0.4)
        child.kill()
        child.wait()
        assert child.returncode == -signal.SIGKILL, child.stderr and child.stderr.read().decode()
        if child.stderr:
            child.stderr.close()
        if round_ % 3 == 2:
            check(scene)
    check(scene)
    assert sum(line[0] == "message" for line in scene.noted()) > 20


def test_what_was_said_before_a_kill_is_kept_as_interrupted_and_the_turn_is_answered_anew(tmp_path: Path) -> None:
    said: tuple[roost.Message, ...] = ()
    for commit in range(MIGRATIONS + 3, MIGRATIONS + 9):  # talk, message, opening, checkpoints; some may come together
        scene = Scene(f"sqlite:///{tmp_path / f'{commit}.db'}", tmp_path / f"{commit}.log")
        child = scene.start(1, "after", str(commit))
        _, problem = child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL, problem.decode()
        with roost.open(scene.database, brains={"tokens": tokens}, limits=QUICK) as service:
            [talk] = service.list_sessions("ann")
            said = settled(service, "ann", talk.talk_session_id)
        if len(said) == 3:
            break
    question, partial, answer = said
    assert (partial.status, answer.status) == ("interrupted", "complete")
    assert SPOKEN.fullmatch(partial.content)
    assert partial.run_id != answer.run_id
    assert answer.content.endswith(f"answers {question.content}")


@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_kill_at_every_commit_boundary_loses_and_doubles_nothing(tmp_path: Path, side: str, step: int) -> None:
    # Before the commit of a migration there is what the commit before it has left, which the other side tries.
    migrations = [1, 2, MIGRATIONS // 2, MIGRATIONS - 1] if side == "after" else []
    commits = [*migrations, *range(MIGRATIONS + (side == "before") * (step - 1), MIGRATIONS + 13, step)]
    scenes = [Scene(f"sqlite:///{tmp_path / f'{k}.db'}", tmp_path / f"{k}.log") for k in commits]
    for k, scene in zip(commits, scenes, strict=True):
        child = scene.start(k, side, str(k))
        _, problem = child.communicate(timeout=60)
        assert child.returncode in (0, -signal.SIGKILL), problem.decode()
        check(scene)
    survivors = [scene for scene in scenes if scene.noted()[-1:] == [["end"]]]
    assert len(survivors) < 6 / step, "too few commits were tried"


def test_a_cursor_from_before_the_kill_can_be_continued(scene: Scene) -> None:
    child = scene.start(3, "after", str(MIGRATIONS + 3))
    child.communicate(timeout=60)
    with roost.open(scene.database, brains={"tokens": tokens}, limits=QUICK) as service:
        [talk] = service.list_sessions("ann")
        seen: dict[int, roost.Message] = {}
        for change in service.stream_messages("ann", talk.talk_session_id):
            before = seen.get(change.message.seq)
            assert before is None or change.reset or change.message.content.startswith(before.content)
            seen[change.message.seq] = change.message
        assert tuple(seen.values()) == everything(service, "ann", talk.talk_session_id)
