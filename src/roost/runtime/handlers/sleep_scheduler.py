"""Sleep scheduler: the wake times of sleeping agents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from roost.core.agents import wake
from roost.core.values import addresses, checks
from roost.core.values.times import timestamp
from roost.core.values.traits import ReplyField
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.stores.sql.agents import agents, lifecycle


class SleepScheduler:
    """Wake times of sleeping agents; durable."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    async def schedule_wake(self, user_id: str, agent_id: str, time: datetime | float) -> None:
        """Wake a sleeping agent at this time instead of any other; its other wake conditions stay."""
        moment = timestamp(time, "the time to wake at")
        await self._rewake(user_id, agent_id, moment)
        self._dispatcher.notifier.wake_at(moment)

    async def cancel_wake(self, user_id: str, agent_id: str) -> None:
        """Remove the wake time; the agent sleeps until another condition is met."""
        await self._rewake(user_id, agent_id, None)

    async def get_next_wake_time(self, user_id: str, agent_id: str) -> Annotated[datetime | None, ReplyField("time")]:
        """Return the wake time; None if there is none."""
        checks.name(user_id, "the user id")
        agent = await self._context.store.read(agents.get, user_id, addresses.agent_id(agent_id))
        return agent.sleep_until

    async def _rewake(self, user_id: str, agent_id: str, moment: float | None) -> None:
        checks.name(user_id, "the user id")
        agent = await self._context.store.read(agents.get, user_id, addresses.agent_id(agent_id))
        otherwise = wake.mail(agent.config.wake_on_priority)
        await self._context.store.write(
            lifecycle.change_condition,
            user_id,
            agent_id,
            lambda condition: wake.with_time(condition, moment, otherwise),
        )
