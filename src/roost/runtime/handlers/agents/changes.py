"""Changes of an agent: their facts, and notifications to its activation and to callers that wait."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from roost.core.agents.agent import Agent
from roost.core.envelopes.outcomes import Consequences
from roost.core.monitoring.facts import FactRow, Name
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.ports.notifier import AgentNotice
from roost.stores.sql.agents import agents as agents_sql

MOST_EDITS = 10_000


class AgentFacts:
    """Facts of changes that an owner requested, built with their commit. A key is `ann/d`."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._meetings = dispatcher.meeting_delivery

    def made(self, user_id: str, agent_ids: Sequence[str], _: object) -> list[FactRow]:
        return [self._fact(Name.AGENT_CREATED, f"{user_id}/{agent_id}") for agent_id in agent_ids]

    def started(self, key: str, consequences: Consequences | None) -> list[FactRow]:
        if consequences is None:
            return []
        return [*self._meetings.facts(consequences.changes), self._fact(Name.AGENT_STARTED, key, "started")]

    def stopped(self, key: str, consequences: Consequences | None) -> list[FactRow]:
        if consequences is None:
            return []
        return [self._fact(Name.AGENT_STOPPED, key, "stopped"), *self._meetings.facts(consequences.changes)]

    def restarted(self, key: str, restarted: tuple[bool, Consequences]) -> list[FactRow]:
        stopped, consequences = restarted
        end = [self._fact(Name.AGENT_STOPPED, key, "stopped")] if stopped else []
        return [*end, *self.started(key, consequences)]

    def paused(self, key: str, paused: bool, changed: bool) -> list[FactRow]:
        name = Name.AGENT_PAUSED if paused else Name.AGENT_RESUMED
        return [self._fact(name, key)] if changed else []

    def fell_asleep(self, key: str, _: object) -> list[FactRow]:
        return [self._fact(Name.AGENT_SLEPT, key)]

    def woken(self, key: str, reason: str, woken: bool) -> list[FactRow]:
        return [self._fact(Name.AGENT_WOKE, key, reason)] if woken else []

    def deleted(self, key: str, consequences: Consequences) -> list[FactRow]:
        return [self._fact(Name.AGENT_DELETED, key), *self._meetings.facts(consequences.changes)]

    def _fact(self, name: Name, key: str, reason: str = "asked for") -> FactRow:
        by = f"user:{key.rpartition('/')[0]}"
        return self._context.facts.fact(name, key, {"reason": reason, "by": by})


class AgentChanges:
    """Callbacks after the commit of a change, on the writer's thread. A key is `ann/d`."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._edits: OrderedDict[str, str] = OrderedDict()
        """Newest edits of the state that other nodes have made, by agent."""

    def made(self, _: object) -> None:
        self._dispatcher.composer.recipients.forget()

    def configured(self, agent: Agent) -> None:
        self._dispatcher.composer.recipients.forget()
        key = f"{agent.user_id}/{agent.agent_id}"
        self._adopt_config(agent)
        self._dispatcher.notifier.agent_changed(key, AgentNotice.CONFIGURED)
        self._dispatcher.notifier.look(key)  # it may have a known profile now, or check its mail sooner
        self._dispatcher.notifier.wake_at(self._context.host.clock.now() + agent.config.check_mail_interval)

    def changed_elsewhere(self, key: str, change: str, text: str, change_id: str = "") -> None:
        """Apply a change that was committed on another node, if the agent is awake here.

        `change_id` orders the notices: an edit of the state that comes twice or late would undo what followed it.
        """
        awake = self._dispatcher.awake(key)
        if awake is None:
            return
        if change == AgentNotice.STATE and change_id:
            if change_id <= self._edits.get(key, ""):
                return
            self._edits[key] = change_id
            self._edits.move_to_end(key)
            while len(self._edits) > MOST_EDITS:
                self._edits.popitem(last=False)
        if change == AgentNotice.CONFIGURED:
            self._context.store.write(agents_sql.get, *key.rsplit("/", 1), then=self._adopt_config)
        elif change == AgentNotice.RESTS:
            awake.call(awake.drain)
        elif change == AgentNotice.WOKEN:
            awake.call(awake.woken)
        elif change == AgentNotice.STATE:
            awake.call(lambda: awake.adopt(text))

    def _adopt_config(self, agent: Agent) -> None:
        awake = self._dispatcher.awake(f"{agent.user_id}/{agent.agent_id}")
        if awake is not None:
            awake.config = agent.config
            awake.call(awake.run_ready)  # it may have a higher limit of concurrent tasks

    def started(self, key: str, consequences: Consequences | None) -> None:
        if consequences is not None:
            self._notify_others(consequences)
        self._dispatcher.notifier.look(key)

    def stopped(self, key: str, consequences: Consequences | None) -> None:
        if consequences is not None:
            self._notify_others(consequences)
        self._dispatcher.notifier.stop_agent(key)

    def restarted(self, key: str, restarted: tuple[bool, Consequences]) -> None:
        _, consequences = restarted
        self._dispatcher.notifier.stop_agent(key)
        self.started(key, consequences)

    def paused(self, key: str, paused: bool, _: bool) -> None:
        if paused:
            self._rest(key)
        else:
            self._dispatcher.notifier.look(key)

    def fell_asleep(self, key: str, _: object) -> None:
        self._rest(key)

    def woken(self, key: str, woken: bool) -> None:
        if woken and (awake := self._dispatcher.awake(key)) is not None:
            awake.call(awake.woken)
        self._dispatcher.notifier.agent_changed(key, AgentNotice.WOKEN)
        self._dispatcher.notifier.look(key)

    def state_replaced(self, key: str, state: str) -> None:
        awake = self._dispatcher.awake(key)
        if awake is not None:
            awake.call(lambda: awake.adopt(state))
        self._dispatcher.notifier.agent_changed(key, AgentNotice.STATE, state)

    def deleted(self, key: str, consequences: Consequences) -> None:
        self._dispatcher.composer.recipients.forget()
        self._notify_others(consequences)
        self._dispatcher.notifier.stop_agent(key)
        self._dispatcher.task_waiters.tell_all()  # its tasks are deleted too: callers that wait read them again
        for talk_id in consequences.talks:
            self._dispatcher.live_talks.forget(talk_id)

    def _rest(self, key: str) -> None:
        """Stop starting new turns; it is claimed again when its turns have ended."""
        awake = self._dispatcher.awake(key)
        if awake is not None:
            awake.call(awake.drain)
        else:
            self._dispatcher.notifier.agent_changed(key, AgentNotice.RESTS)
            self._dispatcher.notifier.look(key)

    def _notify_others(self, consequences: Consequences) -> None:
        """Notify callers that wait for answers of the agent, participants of its meetings, and subscribers."""
        for answered in consequences.answered:
            self._dispatcher.notifier.answered(answered)
        self._dispatcher.meeting_delivery.notify(consequences.changes)
        self._dispatcher.posted(consequences.posted)
