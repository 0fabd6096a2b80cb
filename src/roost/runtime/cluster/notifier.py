"""Notifier of a cluster: what is awake here is notified here, the rest on its own node."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.envelope_json import of_json, to_json
from roost.core.envelopes.requests import Answered, asks_in_talk, request_parts
from roost.core.runs import Closing
from roost.core.talks.runs import StopReason
from roost.runtime.cluster.membership import Membership
from roost.runtime.ports.active_agents import ActiveAgents
from roost.runtime.ports.notifier import AgentNotice, Notifier

T = TypeVar("T")

MOST_OWNERS = 100_000
MOST_WATCHERS = 10_000
SOON = 6.0
"""Seconds after which every node has looked for timers."""
ENDED = 10_000
"""Ids of tasks and requests that have ended here, kept for notices that come late."""
LATE = 0.5
"""Seconds after which a request that is handed over may be older than the ids of what has ended."""


class LocalNotifier(Notifier, ActiveAgents, Protocol):
    """The dispatcher of this node."""

    def put(self, address: str, envelopes: tuple[Envelope, ...], /) -> bool:
        """Put posted envelopes into the lanes of an agent; return False if it is not awake."""


class ClusterNotifier:
    """Any thread may call."""

    def __init__(self, membership: Membership, local: LocalNotifier) -> None:
        self._membership = membership
        self._mesh = membership.mesh
        self._local = self._agents = local
        self._owners: OrderedDict[str, str] = OrderedDict()
        """Nodes of agents, as far as they are known; a wrong one forwards the notice."""
        self._watchers: OrderedDict[str, set[str]] = OrderedDict()
        """Nodes on which callers wait for the end of a task."""
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._senders: OrderedDict[str, str] = OrderedDict()
        """Nodes that have asked this one to look for agents."""
        self._mesh.handlers |= {
            "look": self._looked,
            "request": self._received_request,
            "owner": self._remember,
            "stop_agent": lambda address: local.stop_agent(address),
            "cancel_task": lambda address, task_id: local.cancel_task(address, task_id),
            "answered": lambda request, answer: local.answered(Answered(request, answer)),
            "changed": lambda task_id: local.changed(task_id),
            "watch": self._watch,
            "wake_at": lambda due: local.wake_at(due),
            "withdraw": self._withdrawn,
        }

    # --- talks, whose handlers notify other nodes -------------------------------------------------

    def deliver_talk(self, talk_id: str, user_id: str, envelope: Envelope | None, agent: str = "") -> None:
        self._local.deliver_talk(talk_id, user_id, envelope, agent)

    def stop_talk(self, talk_id: str, why: StopReason, requested: float) -> None:
        self._local.stop_talk(talk_id, why, requested)

    # --- agents ----------------------------------------------------------------------------------

    def deliver(self, envelopes: tuple[Envelope, ...]) -> None:
        self._local.deliver(envelopes)  # which looks for those that are not awake here

    def deliver_elsewhere(self, address: str, envelopes: tuple[Envelope, ...]) -> None:
        """Hand requests over to the node of the agent, which can then answer without a claim.

        They are in lanes of their own. Other envelopes are claimed, since notices may overtake each other.
        """
        owner = self._owners.get(address, "")
        is_elsewhere = owner and owner != self._mesh.node and self._membership.is_alive(owner)
        if is_elsewhere and all(one.ask is not None and one.lane == one.envelope_id for one in envelopes):
            for envelope in envelopes:
                self._mesh.tell(owner, "request", self._mesh.node, self._membership.now(), to_json(envelope))
        else:
            self.look(address)

    def _received_request(self, sender: str, sent: float, row: dict[str, Any]) -> None:
        """Handle a request for an agent of this node. One that comes late may have been claimed and answered."""
        envelope, awake = of_json(row), self._agents.awake(row["address"])
        if envelope is None or awake is None or self._membership.now() - sent > LATE:
            self._looked(row["address"], sender)
        else:
            awake.call(partial(self._put_new, envelope))

    def _put_new(self, envelope: Envelope) -> None:
        """Put a request into its lane, on the loop of its agent, unless it was answered meanwhile."""
        is_over = envelope.ask in self._ended or envelope.envelope_id in self._ended
        if not is_over and not self._local.put(envelope.address, (envelope,)):
            self.look(envelope.address)

    def look(self, address: str) -> None:
        self._look(address, self._mesh.node)

    def _look(self, address: str, sender: str) -> None:
        owner = self._owners.get(address, "")
        if self._agents.is_awake(address):
            self._local.look(address)
        elif owner and owner != self._mesh.node and self._membership.is_alive(owner):
            self._mesh.tell(owner, "look", address, sender)
        elif (chosen := self._membership.place(address)) == self._mesh.node or sender != self._mesh.node:
            self._local.look(address)  # a node that was chosen by another does not choose again
        else:
            self._mesh.tell(chosen, "look", address, sender)

    def _looked(self, address: str, sender: str) -> None:
        """Handle the notice that an agent has work, which belongs to this node or to none."""
        if self._agents.is_awake(address):
            awake = self._agents.awake(address)
            if awake is not None:
                awake.call(awake.look_again)
            self._mesh.tell(sender, "owner", address, self._mesh.node)
        else:
            self._owners.pop(address, None)
            _put(self._senders, address, sender, MOST_WATCHERS)
            self._local.look(address)

    def look_elsewhere(self, address: str, node: str) -> None:
        self._remember(address, node)
        sender = self._senders.pop(address, "")
        if sender:
            self._mesh.tell(sender, "owner", address, node)
        self._mesh.tell(node, "look", address, self._mesh.node)

    def look_where_known(self, address: str, profile: str) -> bool:
        chosen = self._membership.place(address, profile)
        if chosen == self._mesh.node:
            return False
        self._mesh.tell(chosen, "look", address, self._mesh.node)
        return True

    def _remember(self, address: str, node: str) -> None:
        _put(self._owners, address, node, MOST_OWNERS)

    def stop_agent(self, address: str) -> None:
        self._everywhere("stop_agent", address)

    def cancel_task(self, address: str, task_id: str) -> None:
        self._everywhere("cancel_task", address, task_id)

    def agent_changed(self, address: str, change: AgentNotice, text: str = "") -> None:
        if not self._agents.is_awake(address):
            self._mesh.tell_all("agent_changed", address, str(change), text, self._membership.new_change())

    def approval_decided(self, approval_id: str) -> None:
        self._mesh.tell_all("approval_decided", approval_id)

    def missed(self, effects: Iterable[Effect]) -> None:
        self._local.missed(effects)

    def withdraw(self, asked: tuple[tuple[str, str], ...]) -> None:
        self._local.withdraw(asked)
        elsewhere = [one for one in asked if not self._agents.is_awake(one[0])]
        if elsewhere:
            self._mesh.tell_all("withdraw", elsewhere)

    # --- answers, tasks and timers ---------------------------------------------------------------

    def _withdrawn(self, asked: Iterable[tuple[str, str]]) -> None:
        for _, envelope_id in asked:
            _put(self._ended, envelope_id, None, ENDED)
        self._local.withdraw(tuple((address, envelope_id) for address, envelope_id in asked))

    def answered(self, answered: Answered) -> None:
        _put(self._ended, answered.request, None, ENDED)
        self._local.answered(answered)
        holder, *_ = request_parts(answered.request)
        if asks_in_talk(answered.request) or not self._agents.is_awake(holder):
            self._mesh.tell_all("answered", answered.request, dict(answered.answer))

    def ended(self, closing: Closing) -> None:
        task_id = closing.envelope.envelope_id
        self._local.ended(closing)
        _put(self._ended, task_id, None, ENDED)
        self._notify_watchers(task_id)

    def changed(self, task_id: str) -> None:
        self._local.changed(task_id)
        self._notify_watchers(task_id)

    def awaits(self, task_id: str) -> None:
        self._mesh.tell_all("watch", task_id, self._mesh.node)

    def _watch(self, task_id: str, node: str) -> None:
        if task_id in self._ended:
            self._mesh.tell(node, "changed", task_id)
            return
        _put(self._watchers, task_id, {*self._watchers.get(task_id, ()), node}, MOST_WATCHERS)

    def _notify_watchers(self, task_id: str) -> None:
        for node in self._watchers.pop(task_id, ()):
            self._mesh.tell(node, "changed", task_id)

    def wake_at(self, due: float) -> None:
        """Fire timers by then, on every node: it is not known here whose they are."""
        self._local.wake_at(due)
        if due < self._membership.now() + SOON:  # later ones are found by polling
            self._mesh.tell_all("wake_at", due)

    def _everywhere(self, kind: str, *arguments: Any) -> None:
        getattr(self._local, kind)(*arguments)
        self._mesh.tell_all(kind, *arguments)


def _put(kept: OrderedDict[str, T], key: str, value: T, most: int) -> None:
    """Add an entry; drop the oldest if there are too many."""
    kept[key] = value
    if len(kept) > most:
        with suppress(KeyError):  # another thread has dropped it
            kept.popitem(last=False)
