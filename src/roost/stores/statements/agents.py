"""Agents: made, found, configured, moved from state to state, deleted. Every query of a person's carries the owner."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from roost.core import patterns, wake
from roost.core.addresses import unknown
from roost.core.agents import Agent, AgentChange, AgentConfig, State, move
from roost.core.envelopes import Change, Publish, Told
from roost.core.messages import at
from roost.errors import Conflict, LimitReached
from roost.ports import Heard, Row, Tx
from roost.stores.statements import attendance, bulk, diary, mail, registry, requests
from roost.stores.statements.journals import forget_journal
from roost.stores.statements.posting import post
from roost.stores.statements.resting import RESTS
from roost.stores.statements.sleep import (
    await_condition,
    fall_asleep,
    forget_sleep,
    look_at_meetings,
    record,
    record_all,
    wake_up,
)

_WAITS = (
    f"EXISTS (SELECT 1 FROM inbox i WHERE i.address = agents.address AND i.address <> '' AND i.due > 0 AND i.{RESTS})"
)
"""Whether something of it rests until a person has decided."""
_AGENT = (
    "agent_id, user_id, config, state, paused, created, last_active, wake, woken, errors,"
    " (SELECT count(*) FROM inbox i WHERE i.address = agents.address AND i.address <> '') AS depth,"
    f" {_WAITS}"
)


def create(tx: Tx, user_id: str, agent_ids: Sequence[str], config: AgentConfig, change: Change, most: int) -> None:
    """Raises Conflict if one of them exists, LimitReached when the user would have more than `most`."""
    have = tx.write(
        "INSERT INTO users (user_id, talks, agents) VALUES (:user, 0, :count)"
        " ON CONFLICT (user_id) DO UPDATE SET agents = users.agents + :count RETURNING agents",
        {"user": user_id, "count": len(agent_ids)},
    )
    if have[0][0] > most:
        raise LimitReached(f"you may have {most:,} agents, and no more are allowed: delete some first")
    keys = [f"{user_id}/{agent_id}" for agent_id in agent_ids]
    there = bulk.among(tx, "SELECT agent_id FROM agents WHERE address IN", keys)
    if there:
        raise Conflict(f"there is an agent {there[0][0]!r} already: choose another id, or configure that one")
    text = config.to_json()
    rows = [
        (key, user_id, agent_id, text, change.after, change.at, change.at)
        for key, agent_id in zip(keys, agent_ids, strict=True)
    ]
    bulk.insert(tx, "agents", _NEW, rows, constants=_AT_FIRST)
    record_all(tx, [(key, change) for key in keys])
    for key in keys if config.subscriptions else ():
        _subscribe(tx, user_id, key, config)


_NEW = ("address", "user_id", "agent_id", "config", "state", "created", "last_active")
_AT_FIRST = {"paused": "0", "epoch": "0", "wants_load": "0", "errors": "0"}


def get(tx: Tx, user_id: str, agent_id: str) -> Agent:
    agent = _agent_of(found(_row(tx, _AGENT, user_id, agent_id), agent_id))
    return _with_meetings(tx, user_id, [agent])[0]


def listed(tx: Tx, user_id: str, limit: int, after: str, state: str | None) -> list[Agent]:
    """By id, those after `after`."""
    rows = tx.read(
        f"SELECT {_AGENT} FROM agents WHERE user_id = :user AND agent_id > :after"
        " AND (:state IS NULL OR state = :state) ORDER BY agent_id LIMIT :limit".replace(":state IS", _TEXT + " IS"),
        {"user": user_id, "after": after, "limit": limit, "state": state},
    )
    return _with_meetings(tx, user_id, [_agent_of(row) for row in rows])


def _with_meetings(tx: Tx, user_id: str, listed: list[Agent]) -> list[Agent]:
    found = registry.of_agents(tx, [f"{user_id}/{agent.agent_id}" for agent in listed])
    if not found:
        return listed
    return [replace(agent, meetings=found.get(f"{user_id}/{agent.agent_id}", ())) for agent in listed]


_TEXT = "CAST(:state AS TEXT)"  # PostgreSQL cannot tell what kind of nothing a NULL is


def reach(tx: Tx, user_id: str, key: str, known: bool) -> tuple[AgentConfig, int]:
    """The config of an agent that this user may send to (one's own, or a shared one), and how full its inbox is."""
    config = reached(tx, user_id, key, known)
    depth = tx.one(
        "SELECT count(*) FROM (SELECT 1 FROM inbox WHERE address = :address AND address <> '' LIMIT :most) AS waiting",
        {"address": key, "most": config.inbox_limit},
    )
    return config, depth[0] if depth else 0


def reached(tx: Tx, user_id: str, key: str, known: bool = False) -> AgentConfig:
    row = tx.one("SELECT user_id, config FROM agents WHERE address = :address", {"address": key})
    config = AgentConfig.from_json(row[1]) if row else None
    if row is None or config is None or (row[0] != user_id and not config.shared and not known):
        raise unknown(key.rpartition("/")[2])
    return config


def audience(
    tx: Tx, user_id: str, group: str | None, limit: int, after: str, exact: bool
) -> list[tuple[str, State, AgentConfig]]:  # fmt: skip
    """By id, those after `after`; with a group all that are in it are among them."""
    state = f"CASE WHEN state = 'idle' AND {_WAITS} THEN 'waiting' ELSE state END" if exact else "state"
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
    """How much waits for each of them, counted up to `most`."""
    rows = bulk.among(
        tx, "SELECT address, (SELECT count(*) FROM (SELECT 1 FROM inbox i WHERE i.address = agents.address"
        " AND i.address <> '' LIMIT ?) AS waiting) FROM agents WHERE address IN", keys, first=[most],
    )  # fmt: skip
    return {row[0]: row[1] for row in rows}


def configure(tx: Tx, user_id: str, agent_id: str, config: AgentConfig, now: float) -> Agent:
    key = f"{user_id}/{agent_id}"
    rows = tx.write(
        "UPDATE agents SET config = :config WHERE user_id = :user AND agent_id = :agent RETURNING address",
        {"user": user_id, "agent": agent_id, "config": config.to_json()},
    )
    found(rows[0] if rows else None, agent_id)
    _subscribe(tx, user_id, key, config)
    mail.recheck(tx, key, config, now)
    return get(tx, user_id, agent_id)


def stop(tx: Tx, user_id: str, agent_id: str, change: Change, news: Publish) -> Told | None:
    """Whatever runs may write no more; those who deal with it are told. None: it was stopped already."""
    key = _stop(tx, user_id, agent_id, change)
    if key is None:
        return None
    left = attendance.leave(tx, change.change_id, f"agent:{key}", change.at)
    return _tell(tx, key, attendance.STOPPED, news, left)


def restart(tx: Tx, user_id: str, agent_id: str, stopped: Change, started: Change) -> tuple[bool, Told]:
    """Whatever runs may write no more, and it begins anew: what waits for it goes on waiting."""
    key = _stop(tx, user_id, agent_id, stopped)
    told = start(tx, user_id, agent_id, started)
    assert told is not None
    return key is not None, told


def _tell(tx: Tx, key: str, why: str, news: Publish | None, left: Heard) -> Told:
    """`left`: what came of it in meetings."""
    posted = () if news is None else post(tx, news)
    return Told(requests.end(tx, key, why), posted + left.posted, left.changes)


def _stop(tx: Tx, user_id: str, agent_id: str, change: Change) -> str | None:
    """Its key, unless it was stopped already."""
    key, state, _ = _locked(tx, user_id, agent_id)
    if state is State.STOPPED:
        return None
    tx.write(
        "UPDATE agents SET state = 'stopped', epoch = epoch + 1, wake = NULL, wants_load = 0 WHERE address = :address",
        {"address": key},
    )
    forget_sleep(tx, [key])
    record(tx, key, change, before=_before(state, change))
    return key


def start(tx: Tx, user_id: str, agent_id: str, change: Change) -> Told | None:
    """It comes back to the meetings it was in. None: it was not stopped."""
    key, state, _ = _locked(tx, user_id, agent_id)
    if state is not State.STOPPED:
        return None
    tx.write("UPDATE agents SET state = 'idle', errors = 0 WHERE address = :address", {"address": key})
    look_at_meetings(tx, [key], 0.0)
    record(tx, key, change, before=state)
    came = attendance.come_back(tx, change.change_id, f"agent:{key}", change.at)
    return Told((), came.posted, came.changes)


def pause(tx: Tx, user_id: str, agent_id: str, paused: bool, change: Change) -> bool:
    """It stays in its state, which is on record with the cause. False: it was so already."""
    key, state, was = _locked(tx, user_id, agent_id)
    if was is paused:
        return False
    tx.write("UPDATE agents SET paused = :paused WHERE address = :address", {"address": key, "paused": int(paused)})
    if was:
        look_at_meetings(tx, [key], 0.0)
    same = _before(state, change)
    record(tx, key, replace(change, before=same, after=same))
    return True


def sleep(tx: Tx, user_id: str, agent_id: str, condition: str, change: Change) -> None:
    """It sleeps as soon as what it does has ended. One that sleeps already has a new condition now."""
    key, state, _ = _locked(tx, user_id, agent_id)
    if state is not State.SLEEPING:
        move(state, State.SLEEPING, agent_id)
    fall_asleep(tx, user_id, key, condition, change, before=_before(state, change))


def rewake(
    tx: Tx, user_id: str, agent_id: str, change: Callable[[wake.Condition], wake.Condition]
) -> wake.Condition:  # fmt: skip
    key, state, _ = _locked(tx, user_id, agent_id)
    if state is not State.SLEEPING:
        raise Conflict(f"the agent {agent_id!r} is {state}, and does not sleep: put it to sleep first")
    row = tx.one("SELECT wake FROM agents WHERE address = :address", {"address": key})
    assert row is not None
    condition = change(wake.from_json(row[0]))
    await_condition(tx, user_id, key, condition)
    return condition


def rouse(tx: Tx, user_id: str, agent_id: str, change: Change) -> bool:
    """Wake it, whatever it waits for. False: it did not sleep."""
    key, state, _ = _locked(tx, user_id, agent_id)
    if state is not State.SLEEPING:
        return False
    wake_up(tx, [(key, change)])
    return True


def delete(tx: Tx, user_id: str, agent_id: str, news: Publish | None = None) -> Told:
    """With everything that belongs to it; those who deal with it are told."""
    key, _, _ = _locked(tx, user_id, agent_id)
    op_id, now = (news.event_id, news.created) if news is not None else (key, 0.0)
    left = attendance.abandon(tx, op_id, f"agent:{key}", "it was deleted", now)
    told = _tell(tx, key, "it was deleted", news, left)
    ids = {"address": key, "user": user_id}
    talks = tx.read("SELECT talk_id, user_id FROM talks WHERE agent = :address AND agent <> ''", ids)
    for talk_id, talker in talks:
        tx.write("UPDATE users SET talks = talks - 1 WHERE user_id = :user", {"user": talker})
        for table in ("parts", "messages", "runs"):
            tx.write(f"DELETE FROM {table} WHERE talk_id = :talk", {"talk": talk_id})
        diary.forget(tx, talk_id)
        forget_journal(tx, talk_id)
    diary.forget(tx, key)
    tx.write("DELETE FROM talks WHERE agent = :address AND agent <> ''", ids)
    tx.write(
        "DELETE FROM steps WHERE envelope_id IN"
        " (SELECT envelope_id FROM inbox WHERE address = :address AND address <> ''"
        " UNION SELECT envelope_id FROM runs WHERE address = :address AND address <> '')",
        ids,
    )
    for table in (
        "inbox", "tasks", "timers", "schedules", "subscriptions", "agent_changes", "dead_letters", "runs", "memories",
        "memory_words",
    ):  # fmt: skip
        tx.write(f"DELETE FROM {table} WHERE address = :address AND address <> ''", ids)
    forget_journal(tx, key)
    tx.write("DELETE FROM mail WHERE recipient = :mailbox", {"mailbox": f"agent:{key}"})
    tx.write("DELETE FROM agents WHERE address = :address", ids)
    tx.write("UPDATE users SET agents = agents - 1 WHERE user_id = :user", ids)
    return replace(told, talks=tuple(talk_id for talk_id, _ in talks))


def history(tx: Tx, user_id: str, agent_id: str, limit: int, before: str) -> list[AgentChange]:
    """The newest changes of its state, newest first."""
    key = _known(tx, user_id, agent_id)
    rows = tx.read(
        "SELECT change_id, at, before, after, cause, asked_by FROM agent_changes"
        " WHERE address = :address AND change_id < :before ORDER BY change_id DESC LIMIT :limit",
        {"address": key, "limit": limit, "before": before},
    )
    return [
        AgentChange(at(when), State(b) if b else None, State(a), cause, by, name)
        for name, when, b, a, cause, by in rows
    ]


# --- working ---------------------------------------------------------------------------------------


def unfinished(tx: Tx, after: str, limit: int) -> list[str]:
    """Agents with something in their inbox that waits for nobody else, by key."""
    rows = tx.read(
        f"SELECT DISTINCT address FROM inbox WHERE address > :after AND address <> '' AND NOT {RESTS}"
        " ORDER BY address LIMIT :limit",
        {"after": after, "limit": limit},
    )
    return [row[0] for row in rows]


def wanting_load(tx: Tx, limit: int) -> list[str]:
    rows = tx.read("SELECT address FROM agents WHERE wants_load > 0 ORDER BY address LIMIT :limit", {"limit": limit})
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


def _known(tx: Tx, user_id: str, agent_id: str) -> str:
    return str(found(_row(tx, "address", user_id, agent_id), agent_id)[0])


def _locked(tx: Tx, user_id: str, agent_id: str) -> tuple[str, State, bool]:
    row = found(_row(tx, "address, state, paused", user_id, agent_id, tx.for_update), agent_id)
    return row[0], State(row[1]), bool(row[2])


def _before(state: State, change: Change) -> str:
    """What it was until now: the store does not know what one does that is awake."""
    return change.before if change.before is not None and state is State.IDLE else state


def _subscribe(tx: Tx, user_id: str, key: str, config: AgentConfig) -> None:
    tx.write("DELETE FROM subscriptions WHERE address = :address AND awaited = 0", {"address": key})
    for subscription in config.subscriptions:
        tx.write(
            "INSERT INTO subscriptions (user_id, address, pattern, head, awaited, fields) VALUES (:user, :address,"
            " :pattern, :head, 0, :fields) ON CONFLICT (address, awaited, pattern) DO NOTHING",
            {"user": user_id, "address": key, "pattern": subscription.pattern,
             "head": patterns.head(subscription.pattern), "fields": subscription.fields_json()},
        )  # fmt: skip


def _agent_of(row: Row) -> Agent:
    agent_id, user_id, config, state, paused, created, last_active, condition, woken, errors, depth, waits = row
    wanted = wake.from_json(condition) if condition else None
    until = wake.next_time(wanted) if wanted else None
    return Agent(
        agent_id=agent_id,
        user_id=user_id,
        config=AgentConfig.from_json(config),
        state=State.WAITING if waits and state == State.IDLE else State(state),
        paused=bool(paused),
        created=at(created),
        last_active=at(last_active),
        queue_depth=depth,
        sleep_until=at(until) if until is not None else None,
        wake_events=wake.patterns(wanted) if wanted else (),
        wake_condition=wanted,
        wake_reason=woken,
        error_count=errors,
    )
