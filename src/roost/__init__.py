"""Roost: a home for long-lived agents."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roost.core.agents import Agent, AgentChange, AgentConfig
    from roost.core.envelopes import DeadLetter
    from roost.core.events import Event
    from roost.core.facts import Fact, FactPage
    from roost.core.health import Inspection
    from roost.core.limits import Limits
    from roost.core.mail import Mail
    from roost.core.meetings.shown import MeetingSummary, MeetingView
    from roost.core.memories import Memory
    from roost.core.messages import Change, Message, Page
    from roost.core.notes import Note
    from roost.core.schedules import Schedule
    from roost.core.talks import Receipt, Talk
    from roost.core.tasks import Task
    from roost.core.usage import Usage
    from roost.core.wake import all_of, any_of, at, event, load_below, mail
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
        ToolFailed,
        Unavailable,
    )
    from roost.ports import Brain, Chunk, ModelCall, Profile, Tool, Turn, tool
    from roost.service import AgentService, AsyncAgentService, aopen, open

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentChange",
    "AgentConfig",
    "AgentService",
    "AsyncAgentService",
    "Brain",
    "BrainFailed",
    "Busy",
    "Change",
    "Chunk",
    "Conflict",
    "DeadLetter",
    "Event",
    "Fact",
    "FactPage",
    "Forbidden",
    "Inspection",
    "Invalid",
    "LimitReached",
    "Limits",
    "Mail",
    "MeetingSummary",
    "MeetingView",
    "Memory",
    "Message",
    "ModelCall",
    "NoAnswer",
    "NotFound",
    "Note",
    "Page",
    "Profile",
    "Receipt",
    "RoostError",
    "Schedule",
    "Talk",
    "Task",
    "Tool",
    "ToolFailed",
    "Turn",
    "Unavailable",
    "Usage",
    "all_of",
    "any_of",
    "aopen",
    "at",
    "event",
    "load_below",
    "mail",
    "open",
    "tool",
]

_NAMES = {
    "core.agents": "Agent AgentChange AgentConfig",
    "core.envelopes": "DeadLetter",
    "core.events": "Event",
    "core.facts": "Fact FactPage",
    "core.health": "Inspection",
    "core.limits": "Limits",
    "core.mail": "Mail",
    "core.meetings.shown": "MeetingSummary MeetingView",
    "core.memories": "Memory",
    "core.messages": "Change Message Page",
    "core.notes": "Note",
    "core.schedules": "Schedule",
    "core.talks": "Receipt Talk",
    "core.tasks": "Task",
    "core.usage": "Usage",
    "core.wake": "all_of any_of at event load_below mail",
    "errors": "BrainFailed Busy Conflict Forbidden Invalid LimitReached NoAnswer NotFound RoostError ToolFailed"
    " Unavailable",
    "ports": "Brain Chunk ModelCall Profile Tool Turn tool",
    "service": "AgentService AsyncAgentService aopen open",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Whatever is first wanted is loaded then: a help text or an error needs nothing that runs."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"roost.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
