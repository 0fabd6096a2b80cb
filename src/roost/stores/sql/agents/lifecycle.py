"""Lifecycle of agents: start, stop, pause, sleep, wake, delete, and the history of their states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from roost.core.agents import wake
from roost.core.agents.agent import AgentChange, State, move
from roost.core.envelopes.effects import Publish
from roost.core.envelopes.outcomes import Consequences, StateChange
from roost.core.talks.messages import at
from roost.errors import Conflict
from roost.ports import Tx
from roost.stores import locking
from roost.stores.sql.agents.agents import key_of, locked
from roost.stores.sql.brain_data import brain_context
from roost.stores.sql.journal import permissions
from roost.stores.sql.journal.steps import delete_journal
from roost.stores.sql.meetings import membership
from roost.stores.sql.meetings.outcomes import Received
from roost.stores.sql.sending import requests
from roost.stores.sql.sending.effects import post
from roost.stores.sql.sending.row_locks import locks_of
from roost.stores.sql.sleep.conditions import (
    await_condition,
    check_meetings,
    clear_wake_condition,
    fall_asleep,
    wake_up,
)
from roost.stores.sql.tables import agent_changes, capacity, talk_contents

_OWNED = (
    "inbox",
    "tasks",
    "timers",
    "schedules",
    "subscriptions",
    "agent_changes",
    "dead_letters",
    "runs",
    "memories",
    "memory_words",
)
"""Tables whose rows belong to an agent."""


def _by_agent_and_event(tx: Tx, user_id: str, agent_id: str, *more: object) -> locking.Rows:
    return (locking.agent(f"{user_id}/{agent_id}"), *locks_of(one for one in more if type(one) is Publish))


def _by_agent_and_talks(tx: Tx, user_id: str, agent_id: str, *more: object) -> locking.Rows:
    query = "SELECT talk_id FROM talks WHERE agent = :address AND agent <> ''"
    talks = tx.read(query, {"address": f"{user_id}/{agent_id}"})
    return (*_by_agent_and_event(tx, user_id, agent_id, *more), *(locking.talk(row[0]) for row in talks))


@locking.locks(_by_agent_and_event)
def stop(tx: Tx, user_id: str, agent_id: str, change: StateChange, event: Publish) -> Consequences | None:
    """Stop an agent; its inbox stays. Return None if it was stopped already.

    Its running turn can no longer write. Callers that wait for its answers get a failure, the participants of its
    meetings see that it left, and `event` is published.
    """
    key = _stop(tx, user_id, agent_id, change)
    if key is None:
        return None
    departures = membership.leave(tx, change.change_id, f"agent:{key}", change.at)
    return _notify(tx, key, membership.STOPPED, event, departures)


@locking.locks(_by_agent_and_event)
def restart(
    tx: Tx, user_id: str, agent_id: str, stopped: StateChange, started: StateChange
) -> tuple[bool, Consequences]:
    """Stop an agent and start it; its inbox stays, and its running turn can no longer write.

    Return whether it was running, and the effects of the start.
    """
    key = _stop(tx, user_id, agent_id, stopped)
    effects = start(tx, user_id, agent_id, started)
    assert effects is not None
    return key is not None, effects


def _notify(tx: Tx, key: str, reason: str, event: Publish | None, departures: Received) -> Consequences:
    """Publish `event` and fail the requests that wait for this agent. `departures`: its effects in meetings."""
    posted = () if event is None else post(tx, event)
    return Consequences(requests.fail_all(tx, key, reason), posted + departures.posted, departures.changes)


def _stop(tx: Tx, user_id: str, agent_id: str, change: StateChange) -> str | None:
    """Return the agent's key, or None if it was stopped already."""
    key, state, _ = locked(tx, user_id, agent_id)
    if state is State.STOPPED:
        return None
    move(state, State.STOPPED, agent_id)
    agent_changes.append(tx, [(key, replace(change, before=state))])
    tx.write(
        "UPDATE agents SET state = 'stopped', epoch = epoch + 1, wake = NULL, wants_load = 0 WHERE address = :address",
        {"address": key},
    )
    clear_wake_condition(tx, [key])
    return key


@locking.locks(locking.by_user_and_agent)
def start(tx: Tx, user_id: str, agent_id: str, change: StateChange) -> Consequences | None:
    """Start a stopped agent; it rejoins the meetings it left by being stopped. Return None if it was not stopped."""
    key, state, _ = locked(tx, user_id, agent_id)
    if state is not State.STOPPED:
        return None
    move(state, State.IDLE, agent_id)
    tx.write("UPDATE agents SET state = 'idle', errors = 0 WHERE address = :address", {"address": key})
    check_meetings(tx, [key], 0.0)
    agent_changes.append(tx, [(key, replace(change, before=state))])
    rejoined = membership.rejoin(tx, change.change_id, f"agent:{key}", change.at)
    return Consequences((), rejoined.posted, rejoined.changes)


@locking.locks(locking.by_user_and_agent)
def pause(tx: Tx, user_id: str, agent_id: str, paused: bool, change: StateChange) -> bool:
    """Pause or resume an agent: a paused one starts nothing new. Return False if it was in that state already.

    The change is recorded with its cause; the state stays the same.
    """
    key, state, was_paused = locked(tx, user_id, agent_id)
    if was_paused is paused:
        return False
    tx.write("UPDATE agents SET paused = :paused WHERE address = :address", {"address": key, "paused": int(paused)})
    if was_paused:
        check_meetings(tx, [key], 0.0)
    agent_changes.append(tx, [(key, replace(change, before=state, after=""))])
    return True


@locking.locks(locking.by_user_and_agent)
def sleep(tx: Tx, user_id: str, agent_id: str, condition: str, change: StateChange) -> None:
    """Put the agent to sleep as soon as its current work has ended. A sleeping agent gets a new condition."""
    key, state, _ = locked(tx, user_id, agent_id)
    if state is State.SLEEPING:
        change = replace(change, after="")
    else:
        move(state, State.SLEEPING, agent_id)
    fall_asleep(tx, user_id, key, condition, replace(change, before=state))


@locking.locks(locking.by_user_and_agent)
def change_condition(
    tx: Tx, user_id: str, agent_id: str, change: Callable[[wake.Condition], wake.Condition]
) -> wake.Condition:
    """Change the wake condition of a sleeping agent. Raise Conflict if it is not asleep."""
    key, state, _ = locked(tx, user_id, agent_id)
    if state is not State.SLEEPING:
        raise Conflict(f"the agent {agent_id!r} is {state}, not sleeping: put it to sleep first")
    row = tx.one("SELECT wake FROM agents WHERE address = :address", {"address": key})
    assert row is not None
    condition = change(wake.from_json(row[0]))
    await_condition(tx, user_id, key, condition)
    return condition


@locking.locks(locking.by_user_and_agent)
def wake_now(tx: Tx, user_id: str, agent_id: str, change: StateChange) -> bool:
    """Wake the agent, whatever its condition. Return False if it was not asleep."""
    key, state, _ = locked(tx, user_id, agent_id)
    if state is not State.SLEEPING:
        return False
    wake_up(tx, [(key, change)])
    return True


@locking.locks(_by_agent_and_talks)
def delete(tx: Tx, user_id: str, agent_id: str, event: Publish | None = None) -> Consequences:
    """Delete the agent with everything that belongs to it, its talks too; notify others as `stop` does."""
    key, _, _ = locked(tx, user_id, agent_id)
    capacity.forget(tx, [key])
    agent_changes.forget(tx, [key])
    op_id, now = (event.event_id, event.created) if event is not None else (key, 0.0)
    departures = membership.leave_deleted(tx, op_id, f"agent:{key}", "it was deleted", now)
    notified = _notify(tx, key, "it was deleted", event, departures)
    ids = {"address": key, "user": user_id}
    talks = [row[0] for row in tx.read("SELECT talk_id FROM talks WHERE agent = :address AND agent <> ''", ids)]
    for talk_id in talks:
        talk_contents.delete(tx, talk_id)
        brain_context.forget(tx, talk_id)
        delete_journal(tx, talk_id)
    brain_context.forget(tx, key)
    tx.write("DELETE FROM talks WHERE agent = :address AND agent <> ''", ids)
    tx.write(
        "DELETE FROM steps WHERE envelope_id IN"
        " (SELECT envelope_id FROM inbox WHERE address = :address AND address <> ''"
        " UNION SELECT envelope_id FROM runs WHERE address = :address AND address <> '')",
        ids,
    )
    for table in _OWNED:
        tx.write(f"DELETE FROM {table} WHERE address = :address AND address <> ''", ids)
    delete_journal(tx, key)
    permissions.forget_agent(tx, user_id, agent_id)
    tx.write("DELETE FROM mail WHERE recipient = :mailbox", {"mailbox": f"agent:{key}"})
    tx.write("DELETE FROM agents WHERE address = :address", ids)
    return replace(notified, talks=tuple(talks))


def history(tx: Tx, user_id: str, agent_id: str, limit: int, before: str) -> list[AgentChange]:
    """Return the changes of its state, newest first, before `before`."""
    key = key_of(tx, user_id, agent_id)
    rows = tx.read(
        "SELECT change_id, at, before, after, cause, asked_by FROM agent_changes"
        " WHERE address = :address AND change_id < :before ORDER BY change_id DESC LIMIT :limit",
        {"address": key, "limit": limit, "before": before},
    )
    return [
        AgentChange(at(time), State(before_state) if before_state else None, State(after_state), cause, by, change_id)
        for change_id, time, before_state, after_state, cause, by in rows
    ]


@locking.locks(locking.by_user_and_agent)
def record_idle(tx: Tx, user_id: str, agent_id: str, change: StateChange) -> None:
    """Append to the history that the agent is idle, if its inbox is empty."""
    key, _, _ = locked(tx, user_id, agent_id)
    agent_changes.append_idle(tx, key, change)
