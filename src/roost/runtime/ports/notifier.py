"""Notifier: everything that follows a commit, for agents and talks wherever they run."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.requests import Answered
from roost.core.runs import Closing
from roost.core.talks.runs import StopReason


class AgentNotice(StrEnum):
    """Changes of an agent that were requested by its owner."""

    CONFIGURED = "configured"
    RESTS = "rests"
    """It was paused or put to sleep."""
    WOKEN = "woken"
    STATE = "state"
    """Its `turn.state` was replaced."""


class Notifier(Protocol):
    """Any thread may call, after the commit. A call that is lost, doubled or late costs time, never work.

    Receivers also poll the store. In one process the dispatcher is the only adapter; in a cluster it is wrapped.
    """

    def deliver(self, envelopes: tuple[Envelope, ...], /) -> None:
        """Deliver posted envelopes to their agents."""

    def deliver_elsewhere(self, address: str, envelopes: tuple[Envelope, ...], /) -> None:
        """Deliver posted envelopes to an agent that is not awake here."""

    def deliver_talk(self, talk_id: str, user_id: str, envelope: Envelope | None, agent: str = "", /) -> None:
        """Hand over a posted message to the lane of its talk; None: the lane asks the store what there is."""

    def stop_talk(self, talk_id: str, why: StopReason, requested: float, /) -> None:
        """Stop the run of a talk, which has lost its right to write."""

    def stop_agent(self, address: str, /) -> None:
        """Stop everything that an agent does: it was stopped or deleted, and its results are discarded."""

    def cancel_task(self, address: str, task_id: str, /) -> None:
        """Stop a task that was cancelled, if the agent is awake."""

    def look(self, address: str, /) -> None:
        """Claim the work of an agent, and wake it if it may work."""

    def look_elsewhere(self, address: str, node: str, /) -> None:
        """Have the node that an agent belongs to claim its work."""

    def look_where_known(self, address: str, profile: str, /) -> bool:
        """Have a node claim the work of an agent that knows its profile; return False if there is none."""

    def agent_changed(self, address: str, change: AgentNotice, text: str = "", /) -> None:
        """Apply a change of an agent where it is awake, if that is another node; `text`: its new `turn.state`."""

    def approval_decided(self, approval_id: str, /) -> None:
        """Resume the run that waits for this approval, if that is on another node."""

    def wake_at(self, due: float, /) -> None:
        """Fire timers no later than at this time."""

    def answered(self, answered: Answered, /) -> None:
        """Resume the turn that waits for this answer."""

    def ended(self, closing: Closing, /) -> None:
        """Resume the callers that wait for this task, which is over."""

    def changed(self, task_id: str, /) -> None:
        """Have the callers that wait for this task read it again."""

    def awaits(self, task_id: str, /) -> None:
        """Have the node that ends this task notify this one."""

    def missed(self, effects: Iterable[Effect], /) -> None:
        """Have recipients poll for these effects: their commit failed or was not acknowledged."""

    def withdraw(self, asked: tuple[tuple[str, str], ...], /) -> None:
        """Cancel requests that nobody waits for, before agents start them: envelopes by address and id."""
