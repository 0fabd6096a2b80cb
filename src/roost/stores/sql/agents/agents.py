"""Agents: create, read, list, configure.

Queries for a user include the owner: another user's agent is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from roost.core.agents import wake
from roost.core.agents.agent import Agent, AgentConfig, LastError, State
from roost.core.envelopes.outcomes import StateChange
from roost.core.talks.messages import at
from roost.core.values import patterns
from roost.core.values.addresses import unknown
from roost.errors import Conflict, LimitReached
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.sql import mail
from roost.stores.sql.meetings import registry
from roost.stores.sql.tables import agent_changes, capacity, owners, quotas
from roost.stores.sql.tables.parked import PARKED

_IS_PARKED = f"EXISTS (SELECT 1 FROM inbox i WHERE i.address = agents.address AND i.address <> '' AND i.{PARKED})"
"""Condition: the agent has an envelope parked for a person's decision."""
AGENT = (
    "agent_id, user_id, config, state, paused, created, last_active, wake, woken, errors,"
    " (SELECT count(*) FROM inbox i WHERE i.address = agents.address AND i.address <> '') AS depth,"
    f" {_IS_PARKED}"
)


def create(tx: Tx, user_id: str, agent_ids: Sequence[str], config: AgentConfig, change: StateChange, most: int) -> None:
    """Create agents, all of them or none. Raise Conflict if one exists, LimitReached beyond `most`."""
    if not quotas.reserve(tx, "agents", user_id, len(agent_ids), most):
        raise _too_many(most)
    keys = [f"{user_id}/{agent_id}" for agent_id in agent_ids]
    capacity.forget(tx, keys)
    _refuse_existing(tx, keys)
    text = config.to_json()
    rows = [
        (key, user_id, agent_id, text, change.after, change.at, change.at)
        for key, agent_id in zip(keys, agent_ids, strict=True)
    ]
    bulk.insert(tx, "agents", _NEW, rows, constants=_NEW_CONSTANTS)
    agent_changes.forget(tx, keys)
    agent_changes.begin(tx, keys, change)
    for key in keys if config.subscriptions else ():
        _subscribe(tx, user_id, key, config)


def check_new(tx: Tx, user_id: str, agent_ids: Sequence[str], most: int) -> None:
    """Raise what `create` would raise now."""
    if quotas.count(tx, "agents", user_id) + len(agent_ids) > most:
        raise _too_many(most)
    _refuse_existing(tx, [f"{user_id}/{agent_id}" for agent_id in agent_ids])


def _too_many(most: int) -> LimitReached:
    return LimitReached(f"you may have at most {most:,} agents: delete some first")


def _refuse_existing(tx: Tx, keys: Sequence[str]) -> None:
    """Raise Conflict if one of them exists, or is named twice."""
    existing = bulk.read(tx, "SELECT agent_id FROM agents WHERE address IN", keys)
    duplicates = [] if len(set(keys)) == len(keys) else [key for key, count in Counter(keys).items() if count > 1]
    if existing:
        raise Conflict(f"there is an agent {existing[0][0]!r} already: choose another id, or configure that one")
    if duplicates:
        raise Conflict(f"the agent {duplicates[0].rpartition('/')[2]!r} is named twice: name each once")


_NEW = ("address", "user_id", "agent_id", "config", "state", "created", "last_active")
_NEW_CONSTANTS = {"paused": "0", "epoch": "0", "wants_load": "0", "errors": "0"}


def get(tx: Tx, user_id: str, agent_id: str) -> Agent:
    agent = agent_of(found(_row(tx, AGENT, user_id, agent_id), agent_id))
    return with_errors(tx, user_id, with_meetings(tx, user_id, [agent]))[0]


def with_meetings(tx: Tx, user_id: str, agents: list[Agent]) -> list[Agent]:
    meetings = registry.meetings_of_agents(tx, [f"{user_id}/{agent.agent_id}" for agent in agents])
    if not meetings:
        return agents
    return [replace(agent, meetings=meetings.get(f"{user_id}/{agent.agent_id}", ())) for agent in agents]


def with_errors(tx: Tx, user_id: str, agents: list[Agent]) -> list[Agent]:
    """Add the newest failed run to agents that have failed since their last success."""
    keys = [f"{user_id}/{agent.agent_id}" for agent in agents if agent.error_count]
    if not keys:
        return agents
    newest = bulk.read(
        tx,
        "SELECT address, (SELECT r.run_id FROM runs r WHERE r.address = agents.address AND r.address <> ''"
        " AND r.fault IS NOT NULL ORDER BY r.run_id DESC LIMIT 1) AS newest FROM agents WHERE address IN",
        keys,
    )
    ids = [row[1] for row in newest if row[1]]
    rows = bulk.read(tx, "SELECT address, run_id, fault, ended FROM runs WHERE run_id IN", ids) if ids else []
    errors = {address: LastError(run_id, fault, at(ended)) for address, run_id, fault, ended in rows}
    return [replace(agent, last_error=errors.get(f"{user_id}/{agent.agent_id}")) for agent in agents]


def recipient(tx: Tx, user_id: str, key: str, known: bool) -> tuple[AgentConfig, int]:
    """Return the config and the inbox depth of an agent this user may send to (their own, or a shared one)."""
    config = recipient_config(tx, user_id, key, known)
    depth = tx.one(
        "SELECT count(*) FROM (SELECT 1 FROM inbox WHERE address = :address AND address <> '' LIMIT :most) AS waiting",
        {"address": key, "most": config.inbox_limit},
    )
    return config, depth[0] if depth else 0


def recipient_config(tx: Tx, user_id: str, key: str, known: bool = False) -> AgentConfig:
    row = tx.one("SELECT user_id, config FROM agents WHERE address = :address", {"address": key})
    config = AgentConfig.from_json(row[1]) if row else None
    if row is None or config is None or (row[0] != user_id and not config.shared and not known):
        raise unknown(key.rpartition("/")[2])
    return config


def audience(
    tx: Tx, user_id: str, group: str | None, limit: int, after: str, exact: bool
) -> list[tuple[str, State, AgentConfig]]:
    """Return agents by id, after `after`, with their stored state; with a group, a superset of its members.

    `exact`: report `waiting` for agents that wait for a person, which costs a query for each.
    """
    state = f"CASE WHEN state = 'idle' AND {_IS_PARKED} THEN 'waiting' ELSE state END" if exact else "state"
    rows = tx.read(
        f"SELECT agent_id, {state}, config FROM agents WHERE user_id = :user AND agent_id > :after"
        " AND config LIKE :like ESCAPE '!' ORDER BY agent_id LIMIT :limit",
        {"user": user_id, "after": after, "limit": limit, "like": "%" if group is None else _like(group)},
    )
    return [(agent_id, State(state), AgentConfig.from_json(config)) for agent_id, state, config in rows]


def _like(group: str) -> str:
    text = json.dumps(group)
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return f'%"groups": [%{text}%'


def depths(tx: Tx, keys: Sequence[str], most: int) -> dict[str, int]:
    """Return the inbox depth of each agent, counted up to `most`."""
    rows = bulk.read(
        tx,
        "SELECT address, (SELECT count(*) FROM (SELECT 1 FROM inbox i WHERE i.address = agents.address"
        " AND i.address <> '' LIMIT ?) AS waiting) FROM agents WHERE address IN",
        keys,
        first=[most],
    )
    return {row[0]: row[1] for row in rows}


def configure(tx: Tx, user_id: str, agent_id: str, config: AgentConfig, now: float) -> Agent:
    key = f"{user_id}/{agent_id}"
    rows = tx.write(
        "UPDATE agents SET config = :config WHERE user_id = :user AND agent_id = :agent RETURNING address",
        {"user": user_id, "agent": agent_id, "config": config.to_json()},
    )
    found(rows[0] if rows else None, agent_id)
    capacity.forget(tx, [key])
    _subscribe(tx, user_id, key, config)
    mail.recheck(tx, key, config, now)
    return get(tx, user_id, agent_id)


# --- agents with work ---------------------------------------------------------------------------------------


def unfinished(tx: Tx, after: str, limit: int) -> list[str]:
    """Return the keys of agents with something to do in their inbox, without those of other nodes."""
    rows = tx.read(
        f"SELECT DISTINCT address FROM inbox WHERE address > :after AND address <> '' AND NOT {PARKED}"
        f"{owners.and_own_agent(tx, 'inbox.address')} ORDER BY address LIMIT :limit",
        {"after": after, "limit": limit, "node": tx.node},
    )
    return [row[0] for row in rows]


def wanting_load(tx: Tx, limit: int) -> list[str]:
    """Return sleeping agents that wait for a lower load, without those of other nodes."""
    sql = f"SELECT address FROM agents WHERE wants_load > 0{owners.and_own(tx, 'node')} ORDER BY address LIMIT :limit"
    rows = tx.read(sql, {"limit": limit, "node": tx.node})
    return [row[0] for row in rows]


# --- inside ----------------------------------------------------------------------------------------


def found(row: Row | None, agent_id: str) -> Row:
    if row is None:
        raise unknown(agent_id)
    return row


def _row(tx: Tx, columns: str, user_id: str, agent_id: str, ending: str = "") -> Row | None:
    return tx.one(
        f"SELECT {columns} FROM agents WHERE user_id = :user AND agent_id = :agent{ending}",
        {"user": user_id, "agent": agent_id},
    )


def key_of(tx: Tx, user_id: str, agent_id: str) -> str:
    return str(found(_row(tx, "address", user_id, agent_id), agent_id)[0])


def locked(tx: Tx, user_id: str, agent_id: str) -> tuple[str, State, bool]:
    row = found(_row(tx, "address, state, paused", user_id, agent_id, tx.for_update), agent_id)
    return row[0], State(row[1]), bool(row[2])


def _subscribe(tx: Tx, user_id: str, key: str, config: AgentConfig) -> None:
    tx.write("DELETE FROM subscriptions WHERE address = :address AND awaited = 0", {"address": key})
    for subscription in config.subscriptions:
        tx.write(
            "INSERT INTO subscriptions (user_id, address, pattern, head, awaited, fields) VALUES (:user, :address,"
            " :pattern, :head, 0, :fields) ON CONFLICT (address, awaited, pattern) DO NOTHING",
            {
                "user": user_id,
                "address": key,
                "pattern": subscription.pattern,
                "head": patterns.head(subscription.pattern),
                "fields": subscription.fields_json(),
            },
        )


def agent_of(row: Row) -> Agent:
    agent_id, user_id, config, state, paused, created, last_active, condition, woken, errors, depth, is_parked = row
    wake_condition = wake.from_json(condition) if condition else None
    until = wake.next_time(wake_condition) if wake_condition else None
    return Agent(
        agent_id=agent_id,
        user_id=user_id,
        config=AgentConfig.from_json(config),
        state=State.WAITING if is_parked and state == State.IDLE else State(state),
        paused=bool(paused),
        created=at(created),
        last_active=at(last_active),
        queue_depth=depth,
        sleep_until=at(until) if until is not None else None,
        wake_events=wake.patterns(wake_condition) if wake_condition else (),
        wake_condition=wake_condition,
        wake_reason=woken,
        error_count=errors,
    )
