"""All tools, each declared once for every transport."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel

from roost.core.agents.agent import Agent, State
from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.envelopes.tasks import Task, TaskStatus
from roost.core.values.addresses import shortened
from roost.errors import Unavailable
from roost.mcp_server import talking
from roost.mcp_server.arguments import (
    AskArguments,
    GetTaskArguments,
    GiveTaskArguments,
    ListAgentsArguments,
    PublishEventArguments,
    ReadMailArguments,
    ReadTalkArguments,
    SendMailArguments,
    TalkArguments,
    ToolArguments,
)
from roost.mcp_server.results import (
    AgentSummaries,
    AgentSummary,
    MailItem,
    MailItems,
    ProfileSummary,
    PublishedEvent,
    SentMail,
    TalkAnswer,
    TalkMessages,
    TaskReport,
    cut,
    fitting,
)
from roost.mcp_server.talking import McpContext
from roost.ports import Profile

ASK = "ask_"
"""Prefix of the tools that ask one agent."""
MOST_AGENTS = 50
"""Agents with a tool of their own. Clients pass all tools to a model, and many accept no more than a hundred."""
DESCRIBED = 500
"""Characters of an agent's description in a list of tools."""
_FITTING = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Agent ids that can be part of a tool's name: many models accept names of up to 64 such characters."""

_TALKING = (
    "The answer is returned with the id of the talk; pass this talk_id to continue the same talk. A message that is"
    " sent while an answer is being written interrupts it. If the answer takes longer than `wait` seconds, its text so"
    " far is returned, and read_talk returns the rest."
)


@dataclass(frozen=True, slots=True)
class ServedTool:
    """Tool with its schemas and its function."""

    name: str
    title: str
    description: str
    takes: type[ToolArguments]
    gives: type[BaseModel]
    call: Callable[[McpContext, Any], Awaitable[BaseModel]]
    is_read_only: bool = False


def find(name: str) -> ServedTool | None:
    """Return the tool with this name. There is one for each agent; whether the agent exists, its call says."""
    if name in TOOLS:
        return TOOLS[name]
    agent = name.removeprefix(ASK)
    return _asking(agent) if name.startswith(ASK) and _FITTING.fullmatch(agent) else None


async def listed(context: McpContext) -> list[ServedTool]:
    """Return the tools of a user: the fixed ones, and one for each agent that is not stopped, up to `MOST_AGENTS`."""
    agents = await context.service.agents.list(context.user, limit=2 * MOST_AGENTS)
    asked = [one for one in agents if one.state is not State.STOPPED and _FITTING.fullmatch(one.agent_id)]
    own = [_asking(one.agent_id, one.config.description) for one in asked[:MOST_AGENTS]]
    return [*TOOLS.values(), *(tool for tool in own if tool.name not in TOOLS)]


def _asking(agent: str, about: str = "") -> ServedTool:
    described = f" {about[:DESCRIBED].strip()}" if about.strip() else ""
    return ServedTool(
        f"{ASK}{agent}",
        f"Ask {agent}",
        f"Send a message to the agent {agent} and wait for its answer, as the tool talk does.{described}",
        AskArguments,
        TalkAnswer,
        partial(_ask, agent),
    )


async def _ask(agent: str, context: McpContext, asked: AskArguments) -> TalkAnswer:
    return await talking.ask(context, agent, asked)


# --- agents and tasks ----------------------------------------------------------------------------------


async def _list_agents(context: McpContext, asked: ListAgentsArguments) -> AgentSummaries:
    found = await context.service.agents.list(context.user, limit=asked.limit, after=asked.after)
    profiles = context.service.profiles()
    known: Sequence[Profile] = await profiles if inspect.isawaitable(profiles) else profiles
    return AgentSummaries(
        agents=[_summary(one) for one in found],
        profiles=[ProfileSummary(name=one.name, description=one.description) for one in known],
        next_after=found[-1].agent_id if len(found) == asked.limit else None,
    )


def _summary(agent: Agent) -> AgentSummary:
    return AgentSummary(
        agent_id=agent.agent_id,
        description=agent.config.description,
        state=agent.state,
        paused=agent.paused,
        queue_depth=agent.queue_depth,
    )


async def _give_task(context: McpContext, asked: GiveTaskArguments) -> TaskReport:
    task_id = await context.service.tasks.send(
        context.user, asked.agent, asked.prompt, priority=asked.priority, key=asked.key
    )
    try:
        return await _get_task(context, GetTaskArguments(task_id=task_id, wait=asked.wait))
    except Unavailable as error:  # Roost is closing, for example
        raise Unavailable(f"the task {task_id!r} is queued: call get_task for its result later") from error


async def _get_task(context: McpContext, asked: GetTaskArguments) -> TaskReport:
    tasks, user = context.service.tasks, context.user
    if asked.wait > 0:
        return _report(await tasks.wait(user, asked.task_id, asked.wait))
    return _report(await tasks.get(user, asked.task_id))


def _report(task: Task) -> TaskReport:
    step = None if task.is_over else f"Call get_task with task_id={task.task_id!r} and a wait."
    if task.status is TaskStatus.WAITING:
        step = f"A person must approve a step of the agent first (`roost approvals ls`). {step}"
    return TaskReport(
        task_id=task.task_id,
        agent=task.agent_id,
        status=task.status,
        result=None if task.result is None else cut(task.result),
        error=task.error,
        created=task.created,
        ended=task.ended,
        next_step=step,
    )


# --- mail and events -----------------------------------------------------------------------------------


async def _send_mail(context: McpContext, asked: SendMailArguments) -> SentMail:
    mail_id = await context.service.mail.send(
        context.user,
        _address(asked.to),
        asked.subject,
        asked.body,
        sender=None if asked.from_agent is None else _address(asked.from_agent),
        priority=asked.priority,
        key=asked.key,
    )
    return SentMail(mail_id=mail_id)


async def _read_mail(context: McpContext, asked: ReadMailArguments) -> MailItems:
    mail, user = context.service.mail, context.user
    box = None if asked.agent is None else _address(asked.agent)
    status = MailStatus.UNREAD if asked.unread_only else None
    found = await mail.inbox(user, box, status=status, newest=True, limit=asked.limit, before=asked.before)
    shown = fitting(found, lambda one: len(one.body))
    if asked.mark_read and box is None:
        shown = [await mail.read(user, one.mail_id) for one in shown]
    return MailItems(
        mail=[_item(one, user) for one in shown],
        more=len(found) == asked.limit or len(shown) < len(found),
        unread=await mail.unread_count(user, box),
    )


def _item(mail: Mail, user: str) -> MailItem:
    return MailItem(
        mail_id=mail.mail_id,
        sender=shortened(mail.sender, user),
        recipient=shortened(mail.recipient, user),
        subject=mail.subject,
        body=cut(mail.body),
        priority=mail.priority,
        status=mail.status,
        created=mail.created,
        reply_to=mail.reply_to,
    )


async def _publish_event(context: McpContext, asked: PublishEventArguments) -> PublishedEvent:
    event_id = await context.service.events.publish(
        context.user, asked.name, asked.data, priority=asked.priority, optional=asked.optional
    )
    return PublishedEvent(event_id=event_id)


def _address(who: str) -> str:
    """Return the address for a name: `agent:d` for `d`."""
    return who if ":" in who else f"agent:{who}"


_ALL = (
    ServedTool(
        "list_agents",
        "List agents",
        "List your agents with their state and description, and the profiles that you can talk with.",
        ListAgentsArguments,
        AgentSummaries,
        _list_agents,
        is_read_only=True,
    ),
    ServedTool(
        "talk",
        "Talk",
        f"Send a message to an agent or a profile and wait for the answer. {_TALKING}",
        TalkArguments,
        TalkAnswer,
        talking.talk,
    ),
    ServedTool(
        "read_talk",
        "Read a talk",
        "Return messages of a talk: its history, or the rest of an answer that was not finished.",
        ReadTalkArguments,
        TalkMessages,
        talking.read_talk,
        is_read_only=True,
    ),
    ServedTool(
        "give_task",
        "Give a task",
        "Queue a task for an agent, which works on it in the background and survives restarts. Returns the task, with"
        " its result if it ends within `wait` seconds. Use it for work that needs no dialogue.",
        GiveTaskArguments,
        TaskReport,
        _give_task,
    ),
    ServedTool(
        "get_task",
        "Get a task",
        "Return the status of a task and its result; with `wait`, wait until it has ended.",
        GetTaskArguments,
        TaskReport,
        _get_task,
        is_read_only=True,
    ),
    ServedTool(
        "send_mail",
        "Send mail",
        "Send mail to an agent or a user. Agents answer by mail, which read_mail returns.",
        SendMailArguments,
        SentMail,
        _send_mail,
    ),
    ServedTool(
        "read_mail",
        "Read mail",
        "Return mail of your own mailbox or of one of your agents, newest first.",
        ReadMailArguments,
        MailItems,
        _read_mail,
    ),
    ServedTool(
        "publish_event",
        "Publish an event",
        "Publish an event to your agents that subscribe to it. Each call publishes a new event.",
        PublishEventArguments,
        PublishedEvent,
        _publish_event,
    ),
)
TOOLS = {tool.name: tool for tool in _ALL}
"""Tools that every user has, by name."""
