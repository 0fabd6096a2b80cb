"""The contracts between the runtime and the world: time, threads, store, brains.

Adapters live in `hosts`, `stores` and `brains`; the runtime knows only what stands here.
"""

from __future__ import annotations

from roost.ports.attending import Meeting
from roost.ports.brains import AsyncBrain, Brain, Brains, Chunk
from roost.ports.host import Clock, Host, Loop, Pending, Pump, Tracer
from roost.ports.profiles import Profile
from roost.ports.statements import OldPage, Statements
from roost.ports.statements.agents import Seen
from roost.ports.statements.meetings import Acted, Heard, Seated
from roost.ports.statements.steps import Logged
from roost.ports.store import Look, Pace, Params, Row, Store, Tx, World
from roost.ports.tools import Tool, ToolServer, tool
from roost.ports.turns import Acts, Diary, Hand, ModelCall, Turn

__all__ = [
    "Acted",
    "Acts",
    "AsyncBrain",
    "Brain",
    "Brains",
    "Chunk",
    "Clock",
    "Diary",
    "Hand",
    "Heard",
    "Host",
    "Logged",
    "Look",
    "Loop",
    "Meeting",
    "ModelCall",
    "OldPage",
    "Pace",
    "Params",
    "Pending",
    "Profile",
    "Pump",
    "Row",
    "Seated",
    "Seen",
    "Statements",
    "Store",
    "Tool",
    "ToolServer",
    "Tracer",
    "Turn",
    "Tx",
    "World",
    "tool",
]
