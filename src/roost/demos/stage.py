"""Set-up of a demo: the service it runs on, the agents that take part, and a time limit for its meeting."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from roost import log
from roost.core.agents.agent import Agent, State
from roost.core.meetings.view.shown import MeetingView
from roost.core.values.addresses import shortened
from roost.errors import Conflict, Unavailable
from roost.service import AgentService
from roost.settings import Settings
from roost.wiring import from_settings

if TYPE_CHECKING:
    from roost.client import RemoteService

PATIENCE = 60.0
"""Seconds without a change after which a demo is stopped."""
RESTED = 4.0
"""Seconds after which an idle agent that should move is given up."""


@dataclass(frozen=True)
class Stage:
    """The service, the user and the agents of a demo."""

    service: AgentService | RemoteService
    user: str
    prefix: str = ""
    """Prefix of the agents' names in a store that has other agents."""

    def cast(self, role: str, profile: str, state: Mapping[str, Any]) -> str:
        """Create or reuse an agent for a role and return its address."""
        agent_id, agents = f"{self.prefix}{role}", self.service.agents
        try:
            agents.create(self.user, agent_id, profile=profile, description="Plays in a demo.")
        except Conflict:
            agents.configure(self.user, agent_id, profile=profile)
            agents.restart(self.user, agent_id)
        agents.set_state(self.user, agent_id, state)
        return f"agent:{self.user}/{agent_id}"

    def watched(self, views: Iterable[MeetingView]) -> Iterator[MeetingView]:
        """Yield the views of a meeting. Raise Unavailable if nothing changes; a person may take any time to move."""
        changed = busy = time.monotonic()
        cursor = ""
        for view in views:
            yield view
            now = time.monotonic()
            if view.cursor != cursor or view.mover == f"user:{self.user}":
                changed, busy, cursor = now, now, view.cursor
            elif now > changed + PATIENCE:
                awaited = (
                    f"waiting for {shortened(view.mover, self.user)}" if view.mover else f"{view.topic!r} is stuck"
                )
                raise Unavailable(f"nothing has happened for {PATIENCE:g} s: {awaited}")
            elif (resting := self._resting(view.mover)) is None:
                busy = now
            elif now > busy + RESTED:
                raise Unavailable(
                    f"{shortened(view.mover or '', self.user)} does not move: "
                    f"the profile {resting.config.profile!r} cannot play; use a profile with a model"
                )

    def _resting(self, mover: str | None) -> Agent | None:
        """Return the agent that should move if it is idle, which means its brain ran without a move."""
        if mover is None:
            return None
        agent = self.service.agents.get(self.user, mover.rpartition("/")[2])
        is_at_it = agent.queue_depth or agent.state in (State.ACTIVE, State.WAITING)
        return None if is_at_it else agent


@contextmanager
def scratch(settings: Settings) -> Iterator[AgentService]:
    """Open a service on a temporary store, which is removed afterwards."""
    with TemporaryDirectory(prefix="roost-demo-") as name:
        folder = Path(name)
        redactor = log.set_up(folder / "roost.log", level=settings.log, hidden=settings.hidden(), terminal=False)
        limits = replace(settings.limits, drain=0.5, stop_patience=0.3)
        url = f"sqlite:///{folder}/roost.db"
        with AgentService(from_settings(settings, url=url, limits=limits, redactor=redactor)) as service:
            yield service
