"""Roost: a home for long-lived agents."""

from roost.core.limits import Limits
from roost.core.messages import Change, Message, Page
from roost.core.talks import Receipt, Talk
from roost.errors import (
    BrainFailed,
    Busy,
    Conflict,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    RoostError,
    Unavailable,
)
from roost.ports import Brain, Chunk, Profile, Turn
from roost.service import AgentService, AsyncAgentService, aopen, open

__version__ = "0.1.0"

__all__ = [
    "AgentService",
    "AsyncAgentService",
    "Brain",
    "BrainFailed",
    "Busy",
    "Change",
    "Chunk",
    "Conflict",
    "Forbidden",
    "Invalid",
    "LimitReached",
    "Limits",
    "Message",
    "NotFound",
    "Page",
    "Profile",
    "Receipt",
    "RoostError",
    "Talk",
    "Turn",
    "Unavailable",
    "aopen",
    "open",
]
