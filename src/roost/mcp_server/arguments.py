"""Arguments of the tools. Descriptions are written for the model that calls them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LONGEST_WAIT = 300.0
"""Seconds that one call may wait."""
USUAL_WAIT = 45.0
"""Seconds that a call for an answer waits by default: many clients give up after 60 s."""

Wait = Annotated[float, Field(ge=0, le=LONGEST_WAIT, description="Longest time to wait, in seconds.")]
Key = Annotated[
    str | None,
    Field(description="Idempotency key of your choice. Repeat a call with the same key if its result was lost."),
]
TalkId = Annotated[str | None, Field(description="Talk to continue; without it a new talk is started.")]
Priority = Annotated[
    Literal["low", "normal", "high", "urgent"], Field(description="Urgent messages wake a sleeping agent.")
]
AgentId = Annotated[str, Field(description="Id of an agent, from list_agents.")]


class ToolArguments(BaseModel):
    # Strict, so that a number in place of a string is refused and not converted.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class ListAgentsArguments(ToolArguments):
    after: Annotated[str, Field(description="Last agent id of the previous page.")] = ""
    limit: Annotated[int, Field(ge=1, le=200, description="Most agents to return.")] = 50


class AskArguments(ToolArguments):
    message: Annotated[str, Field(description="Text to send.")]
    talk_id: TalkId = None
    wait: Wait = USUAL_WAIT
    key: Key = None


class TalkArguments(AskArguments):
    agent: Annotated[str | None, Field(description="Agent to start a talk with, from list_agents.")] = None
    profile: Annotated[
        str | None, Field(description="Profile to start a talk with, if it is not with an agent; a default exists.")
    ] = None


class ReadTalkArguments(ToolArguments):
    talk_id: Annotated[str, Field(description="Talk to read.")]
    after: Annotated[int, Field(ge=0, le=2**53, description="Only messages with a higher number.")] = 0
    before: Annotated[
        int | None, Field(ge=1, le=2**53, description="Only messages with a lower number, to read older ones.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Most messages to return; the newest are returned.")] = 20
    wait: Annotated[
        float, Field(ge=0, le=LONGEST_WAIT, description="Longest time to wait for the end of an answer, in seconds.")
    ] = 0.0


class GiveTaskArguments(ToolArguments):
    agent: AgentId
    prompt: Annotated[str, Field(description="What the agent is to do.")]
    priority: Priority = "normal"
    wait: Annotated[
        float, Field(ge=0, le=LONGEST_WAIT, description="Longest time to wait for the result, in seconds.")
    ] = 0.0
    key: Key = None


class GetTaskArguments(ToolArguments):
    task_id: Annotated[str, Field(description="Task id that give_task has returned.")]
    wait: Annotated[
        float, Field(ge=0, le=LONGEST_WAIT, description="Longest time to wait for the result, in seconds.")
    ] = 0.0


class SendMailArguments(ToolArguments):
    to: Annotated[str, Field(description="Agent id, or an address: agent:NAME, agent:OWNER/NAME or user:NAME.")]
    subject: Annotated[str, Field(description="Subject, one line.")]
    body: Annotated[str, Field(description="Text of the mail.")]
    from_agent: Annotated[str | None, Field(description="Send as this agent of yours instead of as yourself.")] = None
    priority: Priority = "normal"
    key: Key = None


class ReadMailArguments(ToolArguments):
    agent: Annotated[str | None, Field(description="Read the mailbox of this agent instead of your own.")] = None
    unread_only: Annotated[bool, Field(description="Leave out mail that was read.")] = True
    mark_read: Annotated[bool, Field(description="Mark the returned mail of your own mailbox as read.")] = False
    limit: Annotated[int, Field(ge=1, le=200, description="Most mails to return, newest first.")] = 20
    before: Annotated[str | None, Field(description="Last mail id of the previous page.")] = None


class PublishEventArguments(ToolArguments):
    name: Annotated[str, Field(description="Name of the event, such as build.failed.")]
    data: Annotated[Any, Field(description="Any JSON value, for the agents that receive the event.")] = None
    priority: Priority = "normal"
    optional: Annotated[
        bool, Field(description="Without a subscriber an event becomes a dead letter, unless it is optional.")
    ] = False
