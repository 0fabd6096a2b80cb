"""Where a demo is played: a service, the agents that play it, and the looks of whoever watches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roost import log
from roost.cli.find import Service, service_of, user_of
from roost.cli.meeting_text import name, standing
from roost.cli.meeting_watch import looks
from roost.cli.options import settings_of
from roost.core.agents import Agent, State
from roost.core.meetings.shown import MeetingView
from roost.errors import Conflict, Unavailable
from roost.service import AgentService
from roost.settings import Settings
from roost.wiring import from_settings

PATIENCE = 60.0
"""Seconds in which something must happen."""
RESTED = 4.0
"""Seconds after which one who is to move, and has nothing to do, is not waited for."""


@dataclass(frozen=True)
class Stage:
    service: Service
    user: str
    prefix: str = ""
    """Of the names of the agents, where there may be others."""

    def cast(self, role: str, profile: str, memory: Mapping[str, Any]) -> str:
        """An agent of this name, made or taken up again; its address."""
        agent_id, agents = f"{self.prefix}{role}", self.service.agents
        try:
            agents.create(self.user, agent_id, profile=profile, description="Plays in a demo.")
        except Conflict:
            agents.configure(self.user, agent_id, profile=profile)
            agents.restart(self.user, agent_id)
        agents.set_memory(self.user, agent_id, memory)
        return f"agent:{self.user}/{agent_id}"

    def views(self, meeting_id: str, seen_by: str) -> Iterator[MeetingView]:
        """Raises Unavailable if nothing happens any more; but a person may take as long as they like."""
        changed = busy = time.monotonic()
        cursor = ""
        for view in looks(self.service, self.user, meeting_id, seen_by):
            yield view
            now = time.monotonic()
            if view.cursor != cursor or view.mover == f"user:{self.user}":
                changed, busy, cursor = now, now, view.cursor
            elif now > changed + PATIENCE:
                raise Unavailable(f"nothing has happened for {PATIENCE:g} s: {standing(view, self.user)}")
            elif (resting := self._resting(view.mover)) is None:
                busy = now
            elif now > busy + RESTED:
                raise Unavailable(
                    f"{name(view.mover or '', self.user)} is to move, and does not: "
                    f"the profile {resting.config.profile!r} cannot play; choose one with a model"
                )

    def _resting(self, mover: str | None) -> Agent | None:
        """The agent that is to move, if it has nothing to do: its brain was asked, and did not."""
        if mover is None:
            return None
        agent = self.service.agents.get(self.user, mover.rpartition("/")[2])
        is_at_it = agent.queue_depth or agent.state in (State.ACTIVE, State.WAITING)
        return None if is_at_it else agent


@contextmanager
def stage(store: str | None, config: Path | None, *, keep: bool) -> Iterator[Stage]:
    """On a scratch file that is removed afterwards; or where things are kept, through the Roost that runs there."""
    settings = settings_of(config, store=store)
    user = user_of(settings)
    if keep or store is not None:
        with service_of(settings, hosting=True) as service:
            yield Stage(service, user, "demo-")
    else:
        with TemporaryDirectory(prefix="roost-demo-") as folder, _scratch(settings, Path(folder)) as service:
            yield Stage(service, user)


def _scratch(settings: Settings, folder: Path) -> AgentService:
    log.set_up(folder / "roost.log", level=settings.log, hidden=settings.hidden(), terminal=False)
    limits = replace(settings.limits, drain=0.5, stop_patience=0.3)
    return AgentService(from_settings(settings, url=f"sqlite:///{folder}/roost.db", limits=limits))
