"""Replays on the page of a run: beside what was recorded, with their differences, and without waiting for them."""

from __future__ import annotations

import dataclasses
import threading
from itertools import count
from typing import Any

import pytest

import roost
from roost.core.journal.run_history import Replay
from roost.ui.runs import differences
from roost.ui.shell.background import BackgroundCall
from roost.ui.shell.navigation import Route
from tests.ui.conftest import USER, Screen
from tests.ui.runs.test_runs_page import shown, work

_names = map("replays.a{}".format, count())


@pytest.fixture
def screen(service: roost.AgentService) -> Screen:
    return Screen().look()


@pytest.fixture
def run_id(service: roost.AgentService) -> str:
    agent = service.agents.create(USER, next(_names), profile="brain").agent_id
    return work(service, agent, "steps -").run_id


def ended(screen: Screen, run_id: str) -> Screen:
    """Wait until the replay has ended, and draw the page."""
    call: BackgroundCall[Any] = screen.app.session_state["replays"][run_id]
    assert call._ended.wait(20)
    return screen.look()


def test_a_replay_shows_both_outputs_and_says_that_they_are_identical(screen: Screen, run_id: str) -> None:
    screen.go(Route.RUNS, run=run_id).click("replay_now")
    text = shown(ended(screen, run_id))
    assert "✓ Identical." in text
    assert text.count("<td>First line</td>") == 2
    assert text.count("<td>tool price</td>") == 4


def test_a_replay_ends_after_the_chosen_step(screen: Screen, run_id: str) -> None:
    screen.go(Route.RUNS, run=run_id)
    screen.app.selectbox(key="replay_until").select(2).run()
    text = shown(ended(screen.click("replay_now"), run_id))
    assert "Identical up to step 2." in text
    assert text.count("<td>First line</td>") == 2
    assert "roost-diff" in text
    assert "missing" not in text


def test_what_differs_is_marked_in_words_and_lines(
    screen: Screen, run_id: str, service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = service.runs.replay

    def other(*arguments: Any, **options: Any) -> Replay:
        found = replay(*arguments, **options)
        text, steps = found.text.replace("First line", "First word"), (*found.steps, "tool <b>")
        return dataclasses.replace(
            found, text=text, steps=steps, is_identical=False, diff="--- recorded\n+First word\nadded: tool <b>"
        )

    monkeypatch.setattr(service.runs, "replay", other)
    text = shown(ended(screen.go(Route.RUNS, run=run_id).click("replay_now"), run_id))
    assert "≠ The replay differs." in text
    assert "added: tool <b>" in [code.value for code in screen.app.code]
    assert "<td>First <del>line</del></td>" in text
    assert "<td>First <ins>word</ins></td>" in text
    assert "<ins>tool &lt;b&gt;</ins>" in text


def test_a_page_does_not_wait_for_a_replay(
    screen: Screen, run_id: str, service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    replay = service.runs.replay

    def slow(*arguments: Any, **options: Any) -> Any:
        held.wait(20)
        return replay(*arguments, **options)

    monkeypatch.setattr(service.runs, "replay", slow)
    try:
        screen.go(Route.RUNS, run=run_id).click("replay_now")
        assert "Replaying…" in shown(screen)
        assert screen.app.button(key="replay_now").disabled
    finally:
        held.set()
    assert "Identical" in shown(ended(screen, run_id))


def test_a_double_click_starts_one_replay(
    screen: Screen, run_id: str, service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay, started = service.runs.replay, []

    def counted(*arguments: Any, **options: Any) -> Any:
        started.append(run_id)
        return replay(*arguments, **options)

    monkeypatch.setattr(service.runs, "replay", counted)
    ended(screen.go(Route.RUNS, run=run_id).double_click("replay_now"), run_id)
    assert started == [run_id]


def test_the_reason_why_a_run_cannot_be_replayed_is_a_sentence(
    screen: Screen, run_id: str, service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise roost.LimitReached("8 of your replays are running: wait until one has ended")

    monkeypatch.setattr(service.runs, "replay", refused)
    screen.go(Route.RUNS, run=run_id).click("replay_now")
    assert ended(screen, run_id).notices == ["8 of your replays are running: wait until one has ended."]


def test_a_replay_is_compared_once_and_not_by_each_redraw(
    screen: Screen, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare, compared = differences.html, []

    def counted(name: str, *texts: Any) -> str:
        compared.append((name, threading.current_thread().name))
        return compare(name, *texts)

    monkeypatch.setattr(differences, "html", counted)
    ended(screen.go(Route.RUNS, run=run_id).click("replay_now"), run_id).look()
    assert len(compared) == 2
    assert {thread for _, thread in compared} == {"roost-replay-page"}
    assert "Identical" in shown(screen)


def test_a_result_is_kept_in_the_session(screen: Screen, run_id: str) -> None:
    ended(screen.go(Route.RUNS, run=run_id).click("replay_now"), run_id)
    assert "Identical" in shown(screen.go(Route.RUNS).go(Route.RUNS, run=run_id))
