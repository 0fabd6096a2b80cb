"""Meetings on real services, with agents that say nothing on their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import roost
from roost.testing import eventually
from tests.ui.conftest import USER, Screen

NASTY = "<script>alert(1)</script> **bold** :smile: ![x](http://pictures.example/a.png)"
CallMeeting = Callable[..., str]


@pytest.fixture
def screen(service: roost.AgentService) -> Screen:
    return Screen().look()


@pytest.fixture(scope="module")
def crew(service: roost.AgentService) -> list[str]:
    """Addresses of agents that play, and do not speak."""
    names = ["ada", "ben"]
    known = {agent.agent_id for agent in service.agents.list(USER)}
    service.agents.create_many(USER, [name for name in names if name not in known], profile="demo-player")
    return [f"agent:{USER}/{name}" for name in names]


@pytest.fixture
def call(service: roost.AgentService, crew: list[str]) -> CallMeeting:
    """Call a meeting with `ada` and `ben`, and wait until it runs and all of the user's views are equal."""

    def called(topic: str = "Plans", **options: object) -> str:
        options = {"required": crew, **options}
        meeting_id = service.meetings.call(USER, topic, **options)  # type: ignore[arg-type]
        wait(service, meeting_id, lambda views: all(view.phase == "running" for view in views))
        return meeting_id

    return called


def asked(screen: Screen, name: str) -> str:
    """Return a part of the query of the URL."""
    found = screen.app.query_params.get(name, "")
    return str(found[0] if isinstance(found, list) else found)


def wait(
    service: roost.AgentService, meeting_id: str, so: Callable[[list[roost.MeetingView]], bool]
) -> list[roost.MeetingView]:
    """Wait until the views of the user's participants are so, and equal."""

    def looked() -> list[roost.MeetingView]:
        views = service.meetings.views(USER, meeting_id)
        assert len({view.cursor for view in views}) == 1
        assert so(views)
        return views

    return eventually(looked, 10)
