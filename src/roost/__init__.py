"""Roost: a home for long-lived agents."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roost.client import AsyncRemoteService, RemoteService, aconnect, connect
    from roost.core.accounts.current_user import CurrentUser
    from roost.core.agents.agent import Agent, AgentChange, AgentConfig
    from roost.core.agents.wake import all_of, any_of, at, event, load_below, mail
    from roost.core.brain_data.memories import Memory
    from roost.core.envelopes.dead_letters import DeadLetter
    from roost.core.envelopes.events import Event
    from roost.core.envelopes.late_answers import LateAnswer
    from roost.core.envelopes.mail import Mail, MailPage
    from roost.core.envelopes.tasks import Task
    from roost.core.limits.limits import Limits
    from roost.core.limits.usage import Usage
    from roost.core.meetings.games.games import Game, Outcome
    from roost.core.meetings.games.registry import register_game
    from roost.core.meetings.view.shown import MeetingSummary, MeetingView
    from roost.core.monitoring.facts import Fact, FactPage
    from roost.core.monitoring.health import Inspection
    from roost.core.schedules.schedule import Schedule
    from roost.core.talks.attachments import Attachment, AttachmentFile
    from roost.core.talks.branches import Branch
    from roost.core.talks.messages import Change, Message, Page
    from roost.core.talks.search import Hit, SearchPage
    from roost.core.talks.side_channels import Note
    from roost.core.talks.talk import Receipt, Talk
    from roost.core.talks.transcripts import TranscriptPart
    from roost.errors import (
        BrainFailed,
        Busy,
        Conflict,
        Forbidden,
        Invalid,
        LimitReached,
        NoAnswer,
        NotFound,
        RoostError,
        StaleCursor,
        ToolFailed,
        Unavailable,
    )
    from roost.ports import Brain, Chunk, ModelCall, PlainTurn, Profile, Tool, Turn, TurnStopped, tool
    from roost.service import AgentService, AsyncAgentService, aopen, open

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentChange",
    "AgentConfig",
    "AgentService",
    "AsyncAgentService",
    "AsyncRemoteService",
    "Attachment",
    "AttachmentFile",
    "Brain",
    "BrainFailed",
    "Branch",
    "Busy",
    "Change",
    "Chunk",
    "Conflict",
    "CurrentUser",
    "DeadLetter",
    "Event",
    "Fact",
    "FactPage",
    "Forbidden",
    "Game",
    "Hit",
    "Inspection",
    "Invalid",
    "LateAnswer",
    "LimitReached",
    "Limits",
    "Mail",
    "MailPage",
    "MeetingSummary",
    "MeetingView",
    "Memory",
    "Message",
    "ModelCall",
    "NoAnswer",
    "NotFound",
    "Note",
    "Outcome",
    "Page",
    "PlainTurn",
    "Profile",
    "Receipt",
    "RemoteService",
    "RoostError",
    "Schedule",
    "SearchPage",
    "StaleCursor",
    "Talk",
    "Task",
    "Tool",
    "ToolFailed",
    "TranscriptPart",
    "Turn",
    "TurnStopped",
    "Unavailable",
    "Usage",
    "aconnect",
    "all_of",
    "any_of",
    "aopen",
    "at",
    "connect",
    "event",
    "load_below",
    "mail",
    "open",
    "register_game",
    "tool",
]

_NAMES = {
    "client": "AsyncRemoteService RemoteService aconnect connect",
    "core.accounts.current_user": "CurrentUser",
    "core.agents.agent": "Agent AgentChange AgentConfig",
    "core.envelopes.late_answers": "LateAnswer",
    "core.envelopes.dead_letters": "DeadLetter",
    "core.envelopes.events": "Event",
    "core.monitoring.facts": "Fact FactPage",
    "core.monitoring.health": "Inspection",
    "core.limits.limits": "Limits",
    "core.envelopes.mail": "Mail MailPage",
    "core.meetings.games.registry": "register_game",
    "core.meetings.games.games": "Game Outcome",
    "core.meetings.view.shown": "MeetingSummary MeetingView",
    "core.brain_data.memories": "Memory",
    "core.talks.attachments": "Attachment AttachmentFile",
    "core.talks.branches": "Branch",
    "core.talks.messages": "Change Message Page",
    "core.talks.search": "Hit SearchPage",
    "core.talks.side_channels": "Note",
    "core.schedules.schedule": "Schedule",
    "core.talks.talk": "Receipt Talk",
    "core.talks.transcripts": "TranscriptPart",
    "core.envelopes.tasks": "Task",
    "core.limits.usage": "Usage",
    "core.agents.wake": "all_of any_of at event load_below mail",
    "errors": "BrainFailed Busy Conflict Forbidden Invalid LimitReached NoAnswer NotFound RoostError StaleCursor"
    " ToolFailed Unavailable",
    "ports": "Brain Chunk ModelCall PlainTurn Profile Tool Turn TurnStopped tool",
    "service": "AgentService AsyncAgentService aopen open",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a public name on first use: help texts and errors need nothing that runs."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"roost.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
