"""Pages of agents without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

import roost
from roost.core.agents.agent import Agent
from roost.ui import access
from roost.ui.shell.navigation import Route
from tests.ui.conftest import Screen

USER = "olga"
"""Owner of the agents of these tests only."""

NASTY = "<img src=x onerror=alert(1)> **bold** :smile: [x](http://other.example)"


@dataclass
class AgentScreen(Screen):
    """A page of agents in one browser tab."""

    def show(self, **query: str) -> AgentScreen:
        self.go(Route.AGENTS, **query)
        return self

    def open(self, agent_id: str, tab: str = "", **query: str) -> AgentScreen:
        self.go(Route.AGENTS, agent=agent_id, **({"tab": tab} if tab else {}), **query)
        return self

    def click(self, key: str) -> Self:
        return super().click(self._button(key))

    def press(self, key: str) -> WidgetStates:
        """Return the request of a click, which the server has not received yet."""
        pressed = self.app.button(key=self._button(key)).proto.id
        return WidgetStates(widgets=[WidgetState(id=pressed, trigger_value=True)])

    def double_click(self, key: str) -> Self:
        return super().double_click(self._button(key))

    def has(self, key: str) -> bool:
        return super().has(self._button(key))

    def _button(self, key: str) -> str:
        """Return the key of a button, by its beginning: the rest names the agent, or the schedule."""
        return whole(key, (str(one.key) for one in self.app.button))

    def names(self) -> list[str]:
        return [row[0] for row in self.table("agents")]

    def fill(self, key: str, value: Any) -> AgentScreen:
        """Type into a field, or choose its option, without sending the form. The key is its beginning."""
        kinds = ("text_input", "text_area", "selectbox", "radio", "number_input", "checkbox", "datetime_input")
        fields: list[Any] = [one for kind in kinds for one in self.app.get(kind)]
        chosen = whole(key, (str(one.key) for one in fields))
        [field] = [one for one in fields if one.key == chosen]
        field.set_value(value)
        return self

    @property
    def written(self) -> str:
        """Return all Markdown and HTML of the page."""
        return "\n".join([one.value for one in self.app.markdown] + [one.proto.body for one in self.app.get("html")])

    @property
    def facts(self) -> dict[str, str]:
        return {row[0]: row[1] for key in ("now", "about") for row in self.table(key)}

    @property
    def toasts(self) -> list[str]:
        """Return the toasts, as they are read."""
        return [re.sub(r"\\(.)", r"\1", one.value) for one in self.app.toast]


def whole(key: str, keys: Iterable[str]) -> str:
    """Return the only one of these keys that begins so; the key itself if it is one of them, or if there is none."""
    found = [one for one in keys if one == key or one.startswith(f"{key}_")]
    if key in found or not found:
        return key
    [only] = found
    return only


@pytest.fixture
def screen(service: roost.AgentService, monkeypatch: pytest.MonkeyPatch) -> AgentScreen:
    """A page of a user who has no agents."""
    assert access._hosted is not None
    monkeypatch.setattr(access, "_hosted", replace(access._hosted, identify=lambda _: USER))
    for agent in service.agents.list(USER, limit=1_000):
        service.agents.delete(USER, agent.agent_id)
    page = AgentScreen()
    page.look()
    return page


def stored(service: roost.AgentService, agent_id: str) -> Agent:
    return service.agents.get(USER, agent_id)


def hold(service: roost.AgentService, agent_id: str, prompt: str = "hold on") -> str:
    """Give an agent a task that does not end; return when it runs."""
    cursor = service.monitor.facts(USER, limit=1).cursor
    task = service.tasks.send(USER, agent_id, prompt)
    for _ in service.agents.follow(USER, agent_id, after=cursor):
        if service.tasks.get(USER, task).status == "running":
            break
    return task
