"""Ports: contracts between the runtime and its adapters for time, threads, store and brains.

Adapters are in `hosts`, `stores` and `brains`; the runtime depends only on these contracts.
"""

from __future__ import annotations

from roost.ports.attachments import TurnAttachment
from roost.ports.brain_context import BrainContext
from roost.ports.brains import AsyncBrain, Brain, Brains, Chunk, is_blocking
from roost.ports.host import Bell, Clock, Host, Loop, Pending, Pump, Tracer
from roost.ports.lease import Lease
from roost.ports.meeting import Meeting
from roost.ports.plain import PlainMeeting, PlainTurn, TurnStopped
from roost.ports.profiles import Profile
from roost.ports.store import ClaimEnvironment, ClaimRequest, Params, Row, Store, StoreLoad, Tx
from roost.ports.tools import ClientTool, OfferedTool, Tool, ToolServer, tool
from roost.ports.transport import Transport
from roost.ports.turns import Actions, LongHistory, ModelCall, Turn, TurnRuntime
from roost.ports.webhooks import Poster, PostResult

__all__ = [
    "Actions",
    "AsyncBrain",
    "Bell",
    "Brain",
    "BrainContext",
    "Brains",
    "Chunk",
    "ClaimEnvironment",
    "ClaimRequest",
    "ClientTool",
    "Clock",
    "Host",
    "Lease",
    "LongHistory",
    "Loop",
    "Meeting",
    "ModelCall",
    "OfferedTool",
    "Params",
    "Pending",
    "PlainMeeting",
    "PlainTurn",
    "PostResult",
    "Poster",
    "Profile",
    "Pump",
    "Row",
    "Store",
    "StoreLoad",
    "Tool",
    "ToolServer",
    "Tracer",
    "Transport",
    "Turn",
    "TurnAttachment",
    "TurnRuntime",
    "TurnStopped",
    "Tx",
    "is_blocking",
    "tool",
]
