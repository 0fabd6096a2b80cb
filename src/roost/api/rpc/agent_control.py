"""Methods `async.*`: agents, tasks, mail and events by the names and parameters of existing clients."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from pydantic.alias_generators import to_snake

from roost.api.endpoints import Caller
from roost.api.rpc.methods import RpcMethod
from roost.core.agents import wake
from roost.core.talks.messages import MOST
from roost.protocol.values import Moment, Request, shown
from roost.service import AsyncAgentService


class _NoParams(Request):
    pass


class _AgentParams(Request):
    agent_id: str


class _CreateParams(_AgentParams):
    config: dict[str, Any] = Field(default_factory=dict)
    auto_start: bool = True


class _SleepParams(_AgentParams):
    until_time: Moment | None = None
    duration_seconds: float | None = None
    wake_events: list[str] = Field(default_factory=list)
    wake_on_mail_priority: str | None = None


class _WakeParams(_AgentParams):
    reason: str = "asked for"


class _SendTaskParams(_AgentParams):
    prompt: str
    priority: str = "normal"
    key: str | None = None
    expires_in: float | None = None


class _TaskParams(Request):
    task_id: str


class _ScheduleParams(_AgentParams):
    task: str
    schedule: str
    zone: str | None = None
    name: str | None = None
    priority: str = "normal"


class _UnscheduleParams(Request):
    schedule_id: str


class _MailParams(Request):
    to: str
    subject: str = ""
    body: str
    priority: str = "normal"
    sender: str | None = None
    expires_in: float | None = None
    key: str | None = None


class _EventParams(Request):
    event: str
    data: Any = None
    priority: str = "normal"


PARAMS: dict[str, type[Request]] = {
    "async.createAgent": _CreateParams,
    "async.getAgent": _AgentParams,
    "async.startAgent": _AgentParams,
    "async.stopAgent": _AgentParams,
    "async.pauseAgent": _AgentParams,
    "async.resumeAgent": _AgentParams,
    "async.deleteAgent": _AgentParams,
    "async.sleepAgent": _SleepParams,
    "async.wakeAgent": _WakeParams,
    "async.sendTask": _SendTaskParams,
    "async.cancelTask": _TaskParams,
    "async.scheduleTask": _ScheduleParams,
    "async.unscheduleTask": _UnscheduleParams,
    "async.sendMail": _MailParams,
    "async.publishEvent": _EventParams,
    "async.getAgentStates": _NoParams,
}
"""Parameters of each method."""


def methods(service: AsyncAgentService) -> dict[str, RpcMethod]:
    """Return the methods by name: each is the method of `_AgentControl` with its name."""
    control = _AgentControl(service)
    return {
        name: RpcMethod(params, getattr(control, to_snake(name.removeprefix("async."))))
        for name, params in PARAMS.items()
    }


class _AgentControl:
    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service

    async def create_agent(self, caller: Caller, params: _CreateParams) -> Any:
        config = {to_snake(name): value for name, value in params.config.items()}
        made = await self._service.agents.create(caller.user, params.agent_id, start=params.auto_start, **config)
        return shown(made)

    async def get_agent(self, caller: Caller, params: _AgentParams) -> Any:
        return shown(await self._service.agents.get(caller.user, params.agent_id))

    async def start_agent(self, caller: Caller, params: _AgentParams) -> Any:
        return shown(await self._service.agents.start(caller.user, params.agent_id))

    async def stop_agent(self, caller: Caller, params: _AgentParams) -> Any:
        return shown(await self._service.agents.stop(caller.user, params.agent_id))

    async def pause_agent(self, caller: Caller, params: _AgentParams) -> Any:
        return shown(await self._service.agents.pause(caller.user, params.agent_id))

    async def resume_agent(self, caller: Caller, params: _AgentParams) -> Any:
        return shown(await self._service.agents.resume(caller.user, params.agent_id))

    async def delete_agent(self, caller: Caller, params: _AgentParams) -> None:
        await self._service.agents.delete(caller.user, params.agent_id)

    async def sleep_agent(self, caller: Caller, params: _SleepParams) -> Any:
        conditions = [wake.event(name) for name in params.wake_events]
        if params.wake_on_mail_priority is not None:
            conditions.append(wake.mail(params.wake_on_mail_priority))
        slept = await self._service.agents.sleep(
            caller.user,
            params.agent_id,
            params.duration_seconds,
            until=params.until_time,
            wake_on=wake.any_of(*conditions) if conditions else None,
        )
        return shown(slept)

    async def wake_agent(self, caller: Caller, params: _WakeParams) -> Any:
        return shown(await self._service.agents.wake(caller.user, params.agent_id, params.reason))

    async def send_task(self, caller: Caller, params: _SendTaskParams) -> dict[str, str]:
        task_id = await self._service.tasks.send(
            caller.user,
            params.agent_id,
            params.prompt,
            priority=params.priority,
            key=params.key,
            expires_in=params.expires_in,
        )
        return {"taskId": task_id}

    async def cancel_task(self, caller: Caller, params: _TaskParams) -> Any:
        return shown(await self._service.tasks.cancel(caller.user, params.task_id))

    async def schedule_task(self, caller: Caller, params: _ScheduleParams) -> Any:
        made = await self._service.schedules.create(
            caller.user,
            params.agent_id,
            params.task,
            cron=params.schedule,
            zone=params.zone,
            name=params.name,
            priority=params.priority,
        )
        return shown(made)

    async def unschedule_task(self, caller: Caller, params: _UnscheduleParams) -> None:
        await self._service.schedules.delete(caller.user, params.schedule_id)

    async def send_mail(self, caller: Caller, params: _MailParams) -> dict[str, str]:
        mail_id = await self._service.mail.send(
            caller.user,
            params.to,
            params.subject,
            params.body,
            sender=params.sender,
            priority=params.priority,
            expires_in=params.expires_in,
            key=params.key,
        )
        return {"mailId": mail_id}

    async def publish_event(self, caller: Caller, params: _EventParams) -> dict[str, str]:
        event_id = await self._service.events.publish(caller.user, params.event, params.data, priority=params.priority)
        return {"eventId": event_id}

    async def get_agent_states(self, caller: Caller, _: _NoParams) -> dict[str, Any]:
        found: dict[str, Any] = {}
        after = ""
        while page := await self._service.monitor.states(caller.user, after=after):
            found |= {agent_id: shown(status) for agent_id, status in page.items()}
            after = next(reversed(page))
            if len(page) < MOST:
                break
        return {"agents": found}
