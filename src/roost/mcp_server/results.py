"""Results of the tools, as structured content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")
MOST_TEXT = 100_000
"""Characters of texts in one result: clients commonly refuse results above 1 MiB, which hold each text twice."""
NextStep = Annotated[str | None, Field(description="What to do next, if the work is not finished.")]


class ToolOutput(BaseModel):
    model_config = ConfigDict(frozen=True)


class AgentSummary(ToolOutput):
    agent_id: str
    description: str
    state: Annotated[str, Field(description="idle, active, sleeping, waiting or stopped. A stopped one does no work.")]
    paused: bool
    queue_depth: Annotated[int, Field(description="Number of messages and tasks that wait for it.")]


class ProfileSummary(ToolOutput):
    name: str
    description: str


class AgentSummaries(ToolOutput):
    agents: list[AgentSummary]
    profiles: Annotated[list[ProfileSummary], Field(description="Profiles to talk with; the first is the default.")]
    next_after: Annotated[str | None, Field(description="Pass it as `after` to read the next page.")] = None


class TalkAnswer(ToolOutput):
    talk_id: Annotated[str, Field(description="Pass it with the next message to continue this talk.")]
    message_number: Annotated[int, Field(description="Number of your message in the talk.")]
    status: Annotated[
        Literal["complete", "writing", "waiting", "waiting_for_approval", "interrupted", "failed"],
        Field(description="State of the answer. `writing` and the two `waiting` states are not final."),
    ]
    answer: Annotated[str, Field(description="The answer, or its text so far.")]
    error: Annotated[str | None, Field(description="Why the answer failed.")] = None
    next_step: NextStep = None


class TalkMessage(ToolOutput):
    number: int
    sender: Annotated[str, Field(description="user or agent")]
    text: str
    status: Annotated[str, Field(description="complete, streaming (being written), interrupted or failed")]
    created: datetime
    error: str | None = None


class TalkMessages(ToolOutput):
    talk_id: str
    messages: list[TalkMessage]
    writing: Annotated[bool, Field(description="True while an answer is expected or being written.")]
    more_before: Annotated[bool, Field(description="True if there are older messages: read them with `before`.")]
    next_step: NextStep = None


class TaskReport(ToolOutput):
    task_id: str
    agent: str
    status: Annotated[
        str, Field(description="queued, running, waiting (for an approval), done, failed, cancelled or expired")
    ]
    result: str | None = None
    error: str | None = None
    created: datetime
    ended: datetime | None = None
    next_step: NextStep = None


class SentMail(ToolOutput):
    mail_id: str


class MailItem(ToolOutput):
    mail_id: str
    sender: str
    recipient: str
    subject: str
    body: str
    priority: str
    status: str
    created: datetime
    reply_to: str | None = None


class MailItems(ToolOutput):
    mail: list[MailItem]
    more: Annotated[bool, Field(description="True if there may be more: pass the last mail id as `before`.")]
    unread: Annotated[int, Field(description="Number of unread mails in this mailbox.")]


class PublishedEvent(ToolOutput):
    event_id: str


def cut(text: str) -> str:
    """Return a text that fits a result; a longer one is cut, with a remark."""
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}… [cut: {len(text):,} characters in all]"


def fitting(items: Sequence[T], size: Callable[[T], int]) -> list[T]:
    """Return the first items that fit a result together; at least one, whose text is cut."""
    total, count = 0, 0
    for item in items:
        total += min(size(item), MOST_TEXT)
        if count and total > MOST_TEXT:
            break
        count += 1
    return list(items[:count])


def schema_of(model: type[BaseModel], *, mode: Literal["validation", "serialization"] = "validation") -> dict[str, Any]:
    """Return the JSON schema of a model without titles, which only repeat the names."""
    schema: dict[str, Any] = _untitled(model.model_json_schema(mode=mode))
    return schema


def _untitled(node: Any) -> Any:
    if isinstance(node, list):
        return [_untitled(one) for one in node]
    if isinstance(node, dict):
        return {name: _untitled(inner) for name, inner in node.items() if not (name == "title" and _is_text(inner))}
    return node


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
