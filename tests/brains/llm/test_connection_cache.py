"""Connections to providers: kept from run to run, and neither harmed by a stop nor missed when they are gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from roost.brains.llm import connection_cache
from roost.testing.provider import Call, Cut, Provider, Wait
from tests.brains.llm.test_brain import asking, said
from tests.conftest import eventually, everything

ONE_LOOP = roost.Limits(talk_workers=1, drain=0.5)
MODELS = ("openai:any", "openai-responses:any", "anthropic:any", "google:any")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as one:
        yield one


@pytest.mark.parametrize("model", MODELS)
def test_runs_on_one_loop_share_a_connection(provider: Provider, tmp_path: Path, model: str) -> None:
    with asking(provider, tmp_path, ONE_LOOP, model=model) as service:
        for number in range(4):
            provider.plays(f"answer {number}")
            assert said(service, "go").content == f"answer {number}"
        assert (provider.connections, provider.open) == (1, 1)
    eventually(lambda: provider.open == 0)


def test_the_steps_of_a_run_share_a_connection(provider: Provider, tmp_path: Path) -> None:
    provider.plays(Call("nothing", {}))
    with asking(provider, tmp_path) as service:
        said(service, "go")
    assert (len(provider.asked), provider.connections) == (2, 1)


@pytest.mark.parametrize("model", ["openai:any", "google:any"])
def test_what_was_stopped_is_never_heard_by_the_next_run(provider: Provider, tmp_path: Path, model: str) -> None:
    held = threading.Event()
    with asking(provider, tmp_path, ONE_LOOP, model=model) as service:
        said(service, "go")
        provider.plays("one ", Wait(held.is_set), "two")
        talk = service.create_talk_session("ann")
        service.add_message("ann", talk, "count")
        eventually(lambda: everything(service, "ann", talk)[-1].content == "one ")
        assert service.stop("ann", talk, wait=5).abandoned == ()
        eventually(lambda: provider.open == 0)
        held.set()
        provider.plays("three")
        assert said(service, "go", talk).content == "three"
        assert provider.connections == 2


def test_a_restarted_provider_is_called_again_without_an_error(provider: Provider, tmp_path: Path) -> None:
    with asking(provider, tmp_path, ONE_LOOP) as service:
        said(service, "go")
        provider.hang_up()
        assert said(service, "go").content == "ok"
        assert (len(provider.asked), provider.connections) == (2, 2)


@pytest.mark.parametrize("model", MODELS)
def test_a_connection_that_closes_just_when_it_is_used_costs_another_try(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr("roost.runtime.execution.turn_execution.PAUSE", 0.01)
    with asking(provider, tmp_path, ONE_LOOP, model=model) as service:
        said(service, "go")
        provider.plays(Cut())
        assert said(service, "go").content == "ok"
        assert len(provider.asked) == 3


def test_an_unused_connection_is_closed_after_a_while(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_cache, "KEPT", 0.05)
    with asking(provider, tmp_path) as service:
        said(service, "go")
        eventually(lambda: provider.open == 0)
        assert said(service, "go").content == "ok"


def test_few_lines_rest_however_many_agents_are_awake(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_cache, "RESTING", 2)
    with asking(provider, tmp_path) as service:
        for number in range(6):
            service.agents.create("ann", f"a{number}")
            task = service.tasks.send("ann", f"a{number}", "go")
            assert service.tasks.wait("ann", task, timeout=30).result == "ok"
        assert provider.connections == 6
        eventually(lambda: provider.open == 2)
    eventually(lambda: provider.open == 0)


def test_other_keys_and_other_places_have_lines_of_their_own(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine-012345")
    with asking(provider, tmp_path, ONE_LOOP, key="MY_KEY") as service:
        said(service, "go")
        monkeypatch.setenv("MY_KEY", "sk-other-12345")
        said(service, "go")
    assert [headers["authorization"].split()[-1] for headers in provider.headers] == [
        "sk-mine-012345",
        "sk-other-12345",
    ]
    assert provider.connections == 2
