"""What follows when an agent was changed: it is told if it is awake, and so is whoever waits for it or watches it."""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.agents import Agent
from roost.core.envelopes import Told
from roost.core.facts import Name
from roost.runtime.hall import Hall
from roost.runtime.shop import Shop


class Followups:
    """Called after the commit, on the writer's thread. A key is `ann/d`."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall

    def made(self, user_id: str, agent_ids: Sequence[str]) -> None:
        self._hall.office.forget_audiences()
        for agent_id in agent_ids:
            self._tell(Name.AGENT_CREATED, f"{user_id}/{agent_id}")

    def configured(self, agent: Agent) -> None:
        self._hall.office.forget_audiences()
        key = f"{agent.user_id}/{agent.agent_id}"
        awake = self._hall.awake(key)
        if awake is not None:
            awake.config = agent.config
            awake.call(awake.go_on)  # with more at once, if it may
        self._hall.look(key)  # it may be able to think now, or look at its mail
        self._hall.ring(self._shop.host.clock.now() + agent.config.check_mail_interval)

    def started(self, key: str, told: Told | None) -> None:
        if told is not None:
            self._pass_on(told)
            self._tell(Name.AGENT_STARTED, key, "started")
        self._hall.look(key)

    def stopped(self, key: str, told: Told | None) -> None:
        if told is not None:
            self._tell(Name.AGENT_STOPPED, key, "stopped")
            self._conclude(key)
            self._pass_on(told)
        self._hall.dismiss(key)

    def restarted(self, key: str, came: tuple[bool, Told]) -> None:
        stopped, told = came
        if stopped:
            self._tell(Name.AGENT_STOPPED, key, "stopped")
            self._conclude(key)
        self._hall.dismiss(key)
        self.started(key, told)

    def paused(self, key: str, paused: bool, changed: bool) -> None:
        if changed:
            self._tell(Name.AGENT_PAUSED if paused else Name.AGENT_RESUMED, key)
        if paused:
            self._rest(key)
        else:
            self._hall.look(key)

    def fell_asleep(self, key: str) -> None:
        self._tell(Name.AGENT_SLEPT, key)
        self._conclude(key)
        self._rest(key)

    def woken(self, key: str, reason: str, woken: bool) -> None:
        if woken:
            self._tell(Name.AGENT_WOKE, key, reason)
        self._hall.look(key)

    def given_memory(self, key: str, memory: str) -> None:
        awake = self._hall.awake(key)
        if awake is not None:
            awake.call(lambda: awake.adopt(memory))

    def deleted(self, key: str, told: Told) -> None:
        self._tell(Name.AGENT_DELETED, key)
        self._hall.office.forget_audiences()
        self._pass_on(told)
        self._hall.dismiss(key)
        self._hall.ends.tell_all()  # its tasks are gone too: whoever waits for one shall see
        for talk_id in told.talks:
            self._shop.talks.forget(talk_id)

    def _conclude(self, key: str) -> None:
        if (awake := self._hall.awake(key)) is not None:
            awake.call(awake.conclude)

    def _rest(self, key: str) -> None:
        """It shall begin nothing new; when all it does has ended, it is looked at again."""
        awake = self._hall.awake(key)
        if awake is not None:
            awake.call(awake.finish)
        else:
            self._hall.look(key)

    def _pass_on(self, told: Told) -> None:
        """Those who wait for its answers are told, those it meets, and all others by the news."""
        for answered in told.answered:
            self._hall.answer(answered)
        self._hall.listener.told(told.changes)
        self._hall.posted(told.posted)

    def _tell(self, name: Name, key: str, reason: str = "asked for") -> None:
        """By its owner: nobody else moves an agent here."""
        self._shop.monitor.tell(name, key, {"reason": reason, "by": f"user:{key.rpartition('/')[0]}"})
