"""Queries about agents: search, everything about one agent, and edits of its state.

Every query includes the owner: another user's agent is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from roost.core.agents.agent import Agent, AgentChange
from roost.core.meetings.view.shown import MeetingSummary
from roost.core.monitoring.health import RunRecord
from roost.core.talks.messages import at
from roost.ports import Row, Tx
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.brain_data import memories
from roost.stores.sql.meetings import registry

MOST_LANES = 100
"""Largest number of lanes and of timers that are returned."""
_RUN = (
    "run_id, kind, envelope_id, outcome, attempts, started, ended, fault, root, model, input_tokens, output_tokens,"
    " cost"
)


@dataclass(frozen=True, slots=True)
class StoredAgent:
    """Everything that the store has about an agent."""

    agent: Agent
    memory: str | None
    memories: int
    lanes: Mapping[str, int]
    timers: tuple[tuple[str, datetime], ...]
    changes: tuple[AgentChange, ...]
    runs: tuple[RunRecord, ...]
    meetings: tuple[MeetingSummary, ...]


def inspect(tx: Tx, user_id: str, agent_id: str, limit: int) -> StoredAgent:
    """Return everything about an agent, with up to `limit` of its newest changes and runs."""
    agent = agents.get(tx, user_id, agent_id)
    ids = {"address": f"{user_id}/{agent_id}", "limit": limit, "lanes": MOST_LANES}
    memory = tx.one("SELECT memory FROM agents WHERE address = :address", ids)
    lanes = tx.read(
        "SELECT lane, count(*) AS depth FROM inbox WHERE address = :address AND address <> ''"
        " GROUP BY lane ORDER BY depth DESC, lane LIMIT :lanes",
        ids,
    )
    timers = tx.read("SELECT key, due FROM timers WHERE address = :address ORDER BY due, key LIMIT :lanes", ids)
    runs = tx.read(
        f"SELECT {_RUN} FROM runs WHERE address = :address AND address <> '' ORDER BY run_id DESC LIMIT :limit", ids
    )
    changes = lifecycle.history(tx, user_id, agent_id, limit, "\x7f")
    return StoredAgent(
        agent,
        memory[0] if memory else None,
        memories.count(tx, f"{user_id}/{agent_id}"),
        {str(row[0]): int(row[1]) for row in lanes},
        tuple((key, at(due)) for key, due in timers),
        tuple(changes),
        tuple(_run_of(row) for row in runs),
        registry.open_meetings(tx, f"agent:{user_id}/{agent_id}"),
    )


def find(tx: Tx, user_id: str, text: str, limit: int, after: str) -> list[Agent]:
    """Return agents by id, after `after`, that contain the text in their id or settings."""
    if not text.isascii():
        text = ""
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    rows = tx.read(
        "SELECT agent_id FROM agents WHERE user_id = :user AND agent_id > :after"
        " AND (lower(agent_id) LIKE :like ESCAPE '!' OR lower(config) LIKE :kept ESCAPE '!')"
        " ORDER BY agent_id LIMIT :limit",
        {
            "user": user_id,
            "after": after,
            "limit": limit,
            "like": f"%{text.lower()}%",
            "kept": f"%{json.dumps(text)[1:-1].lower()}%",
        },
    )
    return [agents.get(tx, user_id, row[0]) for row in rows]


def set_memory(tx: Tx, user_id: str, agent_id: str, memory: str) -> None:
    rows = tx.write(
        "UPDATE agents SET memory = :memory WHERE user_id = :user AND agent_id = :agent RETURNING address",
        {"user": user_id, "agent": agent_id, "memory": memory},
    )
    agents.found(rows[0] if rows else None, agent_id)


def _run_of(row: Row) -> RunRecord:
    run_id, kind, envelope_id, outcome, attempts, started, ended, fault, root, *used = row
    return RunRecord(run_id, kind, envelope_id, outcome, attempts, at(started), at(ended), fault, root, *used)
