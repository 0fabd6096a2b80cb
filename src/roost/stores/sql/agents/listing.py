"""Lists of agents, and of what waits in the inbox of one.

Every query includes the owner: another user's agent is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from roost.core.agents.agent import FAILING, Agent, CurrentTask, State
from roost.core.agents.agent_filter import AgentFilter
from roost.core.envelopes.envelope import EnvelopeStatus, Kind
from roost.core.envelopes.waiting import EXCERPT, Waiting
from roost.core.talks.messages import at
from roost.core.values.priority import Priority
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.sql.agents.agents import AGENT, agent_of, key_of, with_errors, with_meetings

_HAS_WORK = "EXISTS (SELECT 1 FROM inbox i WHERE i.address = agents.address AND i.address <> '')"
_TEXT = {
    Kind.MAIL: "(SELECT m.subject FROM mail m WHERE m.mail_id = i.body)",
    Kind.TALK: f"(SELECT substr(m.content, 1, {EXCERPT}) FROM messages m WHERE m.talk_id = i.lane AND m.seq = i.seq)",
    Kind.EVENT: "substr(i.lane, 7)",
    Kind.MEETING: "''",
}
_CASES = " ".join(f"WHEN '{kind}' THEN {text}" for kind, text in _TEXT.items())
_EXCERPT = f"CASE i.kind {_CASES} ELSE substr(i.body, 1, {EXCERPT}) END"
_WAITING = f"i.envelope_id, i.kind, i.lane, i.priority, i.sender, i.created, i.due, i.attempts, i.status, {_EXCERPT}"


def listed(tx: Tx, user_id: str, wanted: AgentFilter, limit: int, after: str) -> list[Agent]:
    """Return agents by id, after `after`: a superset of those that the filter admits.

    What awake agents do is not in the store, and SQL compares texts otherwise than Python.
    """
    values: dict[str, Any] = {"user": user_id, "after": after, "limit": limit}
    where = "user_id = :user AND agent_id > :after"
    for condition, more in _conditions(wanted):
        where += f" AND {condition}"
        values |= more
    rows = tx.read(f"SELECT {AGENT} FROM agents WHERE {where} ORDER BY agent_id LIMIT :limit", values)
    return with_errors(tx, user_id, with_meetings(tx, user_id, [agent_of(row) for row in rows]))


def _conditions(wanted: AgentFilter) -> Iterator[tuple[str, dict[str, Any]]]:
    if wanted.state in (State.SLEEPING, State.STOPPED, State.IDLE):
        yield "state = :state", {"state": wanted.state}
    elif wanted.state is not None:
        yield f"state = 'idle' AND {_HAS_WORK}", {}
    if wanted.paused is not None:
        yield "paused = :paused", {"paused": int(wanted.paused)}
    if wanted.failing is not None:
        yield f"errors {'>=' if wanted.failing else '<'} {FAILING}", {}
    if wanted.profile is not None:
        start = f'{{"profile": {json.dumps(wanted.profile)},'
        yield "config LIKE :profile ESCAPE '!'", {"profile": f"{_escaped(start)}%"}
    if wanted.text is not None and wanted.text.isascii():
        text = {
            "id": f"%{_escaped(wanted.text.lower())}%",
            "kept": f"%{_escaped(json.dumps(wanted.text.lower())[1:-1])}%",
        }
        yield "(lower(agent_id) LIKE :id ESCAPE '!' OR lower(config) LIKE :kept ESCAPE '!')", text


def _escaped(text: str) -> str:
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return text


def with_current_tasks(tx: Tx, agents: Sequence[Agent]) -> list[Agent]:
    """Add what each agent works on to those that work."""
    ids = [agent.current_tasks[0] for agent in agents if agent.current_tasks]
    rows = bulk.read(tx, f"SELECT i.envelope_id, i.kind, {_EXCERPT} FROM inbox i WHERE i.envelope_id IN", ids)
    found = {row[0]: CurrentTask(row[0], row[1], row[2] or "") for row in rows}
    return [
        replace(agent, working_on=found.get(agent.current_tasks[0])) if agent.current_tasks else agent
        for agent in agents
    ]


def inbox(tx: Tx, user_id: str, agent_id: str, limit: int, after: str) -> list[Waiting]:
    """Return what is in an agent's inbox, in the order in which it is taken, after `after`."""
    key = key_of(tx, user_id, agent_id)
    start = tx.one(
        "SELECT rank, envelope_id FROM inbox WHERE envelope_id = :after AND address = :address AND address <> ''",
        {"after": after, "address": key},
    )
    rows = tx.read(
        f"SELECT {_WAITING} FROM inbox i WHERE i.address = :address AND i.address <> ''"
        f"{' AND (i.rank, i.envelope_id) > (:rank, :after)' if start else ''}"
        " ORDER BY i.rank, i.envelope_id LIMIT :limit",
        {"address": key, "limit": limit, **({"rank": start[0], "after": start[1]} if start else {})},
    )
    return [_waiting_of(row) for row in rows]


def _waiting_of(row: Row) -> Waiting:
    envelope_id, kind, lane, priority, sender, created, due, attempts, status, text = row
    return Waiting(
        envelope_id,
        Kind(kind),
        lane,
        Priority(priority),
        sender,
        text or "",
        at(created),
        at(due) if due > created else None,
        attempts,
        is_parked=status == EnvelopeStatus.PARKED,
    )
