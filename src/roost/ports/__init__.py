"""Ports: contracts between the runtime and its adapters for time, threads, store and brains.

Adapters are in `hosts`, `stores` and `brains`; the runtime depends only on these contracts.
"""

from __future__ import annotations

from roost.ports.attending import Meeting
from roost.ports.brains import AsyncBrain, Brain, Brains, Chunk
from roost.ports.host import Clock, Host, Loop, Pending, Pump, Tracer
from roost.ports.plain import PlainMeeting, PlainTurn, TurnStopped
from roost.ports.profiles import Profile
from roost.ports.store import Look, Pace, Params, Row, Store, Tx, World
from roost.ports.tools import Tool, ToolServer, tool
from roost.ports.turns import Acts, Diary, Hand, LongHistory, ModelCall, Turn

__all__ = [
    "Acts",
    "AsyncBrain",
    "Brain",
    "Brains",
    "Chunk",
    "Clock",
    "Diary",
    "Hand",
    "Host",
    "LongHistory",
    "Look",
    "Loop",
    "Meeting",
    "ModelCall",
    "Pace",
    "Params",
    "Pending",
    "PlainMeeting",
    "PlainTurn",
    "Profile",
    "Pump",
    "Row",
    "Store",
    "Tool",
    "ToolServer",
    "Tracer",
    "Turn",
    "TurnStopped",
    "Tx",
    "World",
    "tool",
]
