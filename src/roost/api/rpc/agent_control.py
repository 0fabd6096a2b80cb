"""Methods `async.*`: agents, tasks, mail and events by the names and parameters of existing clients."""

from __future__ import annotations

from collections.abc import Mapping
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


class _SendTaskParams(_AgentParams):
    prompt: str
    priority: str = "normal"
    key: str | None = None
    expires_in: float | None = None


class _ScheduleParams(_AgentParams):
    task: str
    schedule: str
    zone: str | None = None
    name: str | None = None
    priority: str = "normal"


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


ALIASES = {
    "async.getAgent": "agent.get",
    "async.startAgent": "agent.start",
    "async.stopAgent": "agent.stop",
    "async.pauseAgent": "agent.pause",
    "async.resumeAgent": "agent.resume",
    "async.deleteAgent": "agent.delete",
    "async.wakeAgent": "agent.wake",
    "async.cancelTask": "task.cancel",
    "async.unscheduleTask": "schedule.delete",
}
"""Methods of the service under the names of existing clients."""
PARAMS: dict[str, type[Request]] = {
    "async.createAgent": _CreateParams,
    "async.sleepAgent": _SleepParams,
    "async.sendTask": _SendTaskParams,
    "async.scheduleTask": _ScheduleParams,
    "async.sendMail": _MailParams,
    "async.publishEvent": _EventParams,
    "async.getAgentStates": _NoParams,
}
"""Parameters of the methods that differ from those of the service."""
SCOPES = {
    "async.createAgent": "agents:write",
    "async.sleepAgent": "agents:write",
    "async.sendTask": "tasks:write",
    "async.scheduleTask": "schedules:write",
    "async.sendMail": "mail:write",
    "async.publishEvent": "events:write",
    "async.getAgentStates": "monitor:read",
}
"""Scopes that tokens need for them."""


def methods(service: AsyncAgentService, known: Mapping[str, RpcMethod]) -> dict[str, RpcMethod]:
    """Return the methods by name; `known` are those of the service."""
    control = _AgentControl(service)
    own = {name: RpcMethod(params, getattr(control, _method(name)), SCOPES[name]) for name, params in PARAMS.items()}
    return {name: known[method] for name, method in ALIASES.items()} | own


def _method(name: str) -> str:
    """Return the method of `_AgentControl` that serves a name."""
    return to_snake(name.removeprefix("async."))


class _AgentControl:
    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service

    async def create_agent(self, caller: Caller, params: _CreateParams) -> Any:
        config = {to_snake(name): value for name, value in params.config.items()}
        made = await self._service.agents.create(caller.user, params.agent_id, start=params.auto_start, **config)
        return shown(made)

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
