"""A model that the owner connects while Roost runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import roost
from roost.connections.local_servers import LocalServer
from roost.settings import load
from roost.testing.provider import Provider
from roost.wiring import connections


def test_a_model_can_be_talked_with_at_once_and_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOST_DATA", str(tmp_path))
    with Provider() as provider:
        with roost.open() as service:
            server = LocalServer("LM Studio", provider.url, ("some-model",))
            profile = connections(service.roost, load()).add_local(server, "some-model")
            assert service.profiles()[0] is profile
            assert talked(service, profile.name) == "ok"
        with roost.open() as service:
            assert service.profiles()[0] == profile
            assert talked(service, profile.name) == "ok"


def talked(service: roost.AgentService, profile: str) -> str:
    talk = service.create_talk_session("ann", profile=profile)
    service.add_message("ann", talk, "hello")
    *_, last = service.stream_messages("ann", talk)
    assert not last.message.error
    return last.message.content
