"""Notifications after an agent was changed: to its activation, to callers that wait, and to the facts."""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.agents.agent import Agent
from roost.core.envelopes.outcomes import Consequences
from roost.core.monitoring.facts import Name
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher


class AgentChanges:
    """Callbacks after the commit of a change, on the writer's thread. A key is `ann/d`."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    def made(self, user_id: str, agent_ids: Sequence[str]) -> None:
        self._dispatcher.composer.recipients.forget()
        for agent_id in agent_ids:
            self._record(Name.AGENT_CREATED, f"{user_id}/{agent_id}")

    def configured(self, agent: Agent) -> None:
        self._dispatcher.composer.recipients.forget()
        key = f"{agent.user_id}/{agent.agent_id}"
        awake = self._dispatcher.awake(key)
        if awake is not None:
            awake.config = agent.config
            awake.call(awake.run_ready)  # it may have a higher limit of concurrent tasks
        self._dispatcher.notifier.look(key)  # it may have a known profile now, or check its mail sooner
        self._dispatcher.notifier.wake_at(self._context.host.clock.now() + agent.config.check_mail_interval)

    def started(self, key: str, consequences: Consequences | None) -> None:
        if consequences is not None:
            self._notify_others(consequences)
            self._record(Name.AGENT_STARTED, key, "started")
        self._dispatcher.notifier.look(key)

    def stopped(self, key: str, consequences: Consequences | None) -> None:
        if consequences is not None:
            self._record(Name.AGENT_STOPPED, key, "stopped")
            self._notify_others(consequences)
        self._dispatcher.notifier.stop_agent(key)

    def restarted(self, key: str, restarted: tuple[bool, Consequences]) -> None:
        stopped, consequences = restarted
        if stopped:
            self._record(Name.AGENT_STOPPED, key, "stopped")
        self._dispatcher.notifier.stop_agent(key)
        self.started(key, consequences)

    def paused(self, key: str, paused: bool, changed: bool) -> None:
        if changed:
            self._record(Name.AGENT_PAUSED if paused else Name.AGENT_RESUMED, key)
        if paused:
            self._rest(key)
        else:
            self._dispatcher.notifier.look(key)

    def fell_asleep(self, key: str) -> None:
        self._record(Name.AGENT_SLEPT, key)
        self._rest(key)

    def woken(self, key: str, reason: str, woken: bool) -> None:
        if woken:
            self._record(Name.AGENT_WOKE, key, reason)
            if (awake := self._dispatcher.awake(key)) is not None:
                awake.call(awake.woken)
        self._dispatcher.notifier.look(key)

    def given_memory(self, key: str, memory: str) -> None:
        awake = self._dispatcher.awake(key)
        if awake is not None:
            awake.call(lambda: awake.adopt(memory))

    def deleted(self, key: str, consequences: Consequences) -> None:
        self._record(Name.AGENT_DELETED, key)
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
            self._dispatcher.notifier.look(key)

    def _notify_others(self, consequences: Consequences) -> None:
        """Notify callers that wait for answers of the agent, participants of its meetings, and subscribers."""
        for answered in consequences.answered:
            self._dispatcher.notifier.answered(answered)
        self._dispatcher.listener.notify(consequences.changes)
        self._dispatcher.posted(consequences.posted)

    def _record(self, name: Name, key: str, reason: str = "asked for") -> None:
        """Record a change that the owner requested."""
        self._context.monitor.record(name, key, {"reason": reason, "by": f"user:{key.rpartition('/')[0]}"})
