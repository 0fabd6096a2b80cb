"""Services that turns use: composer, requests, notifier, and the awake agents."""

from __future__ import annotations

from dataclasses import dataclass

from roost.runtime.context import RuntimeContext
from roost.runtime.outgoing.compose import Composer
from roost.runtime.outgoing.requests import Requests
from roost.runtime.ports.active_agents import ActiveAgents
from roost.runtime.ports.notifier import Notifier


@dataclass(frozen=True, slots=True)
class TurnServices:
    context: RuntimeContext
    composer: Composer
    requests: Requests
    notifier: Notifier
    agents: ActiveAgents
