"""The contracts between the runtime and the world: time, threads, store, brains.

Adapters live in `hosts`, `stores` and `brains`; the runtime knows only what stands here.
"""

from __future__ import annotations

from roost.ports.brains import (
    Acts,
    AsyncBrain,
    BlockingBrain,
    Brain,
    Brains,
    Chunk,
    Hand,
    Profile,
    Turn,
)
from roost.ports.host import (
    Clock,
    Host,
    Loop,
    Pending,
    Pump,
    Tracer,
)
from roost.ports.statements import (
    AgentStatements,
    EventStatements,
    InboxStatements,
    LetterStatements,
    MailStatements,
    MemoryStatements,
    MessageStatements,
    OldPage,
    RetentionStatements,
    RunStatements,
    Seen,
    Statements,
    TalkStatements,
    TaskStatements,
    TimerStatements,
    WatchStatements,
)
from roost.ports.store import (
    Look,
    Pace,
    Params,
    Row,
    Store,
    Tx,
    World,
)

__all__ = [
    "Acts",
    "AgentStatements",
    "AsyncBrain",
    "BlockingBrain",
    "Brain",
    "Brains",
    "Chunk",
    "Clock",
    "EventStatements",
    "Hand",
    "Host",
    "InboxStatements",
    "LetterStatements",
    "Look",
    "Loop",
    "MailStatements",
    "MemoryStatements",
    "MessageStatements",
    "OldPage",
    "Pace",
    "Params",
    "Pending",
    "Profile",
    "Pump",
    "RetentionStatements",
    "Row",
    "RunStatements",
    "Seen",
    "Statements",
    "Store",
    "TalkStatements",
    "TaskStatements",
    "TimerStatements",
    "Tracer",
    "Turn",
    "Tx",
    "WatchStatements",
    "World",
]
