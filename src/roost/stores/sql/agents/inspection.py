"""Queries about one agent: everything about it, and edits of its state.

Every query includes the owner: another user's agent is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from roost.core.agents.agent import Agent, AgentChange
from roost.core.meetings.view.shown import MeetingSummary
from roost.core.monitoring.health import RunRecord
from roost.core.talks.messages import at
from roost.ports import Row, Tx
from roost.stores import locking
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
    turn_state: str | None
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
    state = tx.one("SELECT memory FROM agents WHERE address = :address", ids)
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
        state[0] if state else None,
        memories.count(tx, f"{user_id}/{agent_id}"),
        {str(row[0]): int(row[1]) for row in lanes},
        tuple((key, at(due)) for key, due in timers),
        tuple(changes),
        tuple(_run_of(row) for row in runs),
        registry.open_meetings(tx, f"agent:{user_id}/{agent_id}"),
    )


@locking.locks(locking.by_user_and_agent)
def set_state(tx: Tx, user_id: str, agent_id: str, state: str) -> None:
    rows = tx.write(
        "UPDATE agents SET memory = :state WHERE user_id = :user AND agent_id = :agent RETURNING address",
        {"user": user_id, "agent": agent_id, "state": state},
    )
    agents.found(rows[0] if rows else None, agent_id)


def _run_of(row: Row) -> RunRecord:
    run_id, kind, envelope_id, outcome, attempts, started, ended, fault, root, *used = row
    return RunRecord(run_id, kind, envelope_id, outcome, attempts, at(started), at(ended), fault, root, *used)
