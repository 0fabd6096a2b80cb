"""State of agents: each change by a turn is applied to the values it was based on.

A turn whose base values have changed, because another turn was refused or a person edited them, is refused too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from roost.core.brain_data.state_merge import conflicting, merged, rebased
from roost.core.envelopes.outcomes import StateWrite
from roost.core.runs import Closing, Verdict
from roost.ports import Tx
from roost.stores import bulk


@dataclass(slots=True)
class NewStates:
    """State of agents after these closings, and the closings that were based on other values."""

    texts: dict[str, str] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    """Refused closings, by the id of the object."""


def compute(
    tx: Tx, closings: Sequence[Closing], unfenced: Sequence[Closing], writes: Sequence[StateWrite]
) -> NewStates:
    """Compute the states in the order of the changes; `unfenced`: the closings that may be settled."""
    states = NewStates()
    with_state = [c for c in unfenced if c.state is not None and c.verdict is Verdict.DONE]
    if not with_state and not writes:
        return states
    ending = f" ORDER BY envelope_id{tx.for_update}"
    ids = sorted({c.envelope.envelope_id for c in with_state})
    existing = {row[0] for row in bulk.read(tx, "SELECT envelope_id FROM inbox WHERE envelope_id IN", ids, ending)}
    keys = sorted({c.envelope.address for c in with_state} | {write.address for write in writes})
    ending = f" ORDER BY address{tx.for_update}"
    rows = bulk.read(tx, "SELECT address, epoch, memory FROM agents WHERE address IN", keys, ending)
    epochs, texts = {row[0]: row[1] for row in rows}, {row[0]: row[2] or "" for row in rows}
    for change in _in_order(closings, {id(c) for c in with_state}, writes):
        if isinstance(change, StateWrite):
            if epochs.get(change.address) == change.epoch:
                texts[change.address] = states.texts[change.address] = _rebased(change, texts[change.address])
                _mark(tx, change)
        elif change.envelope.envelope_id in existing:
            key = change.envelope.address
            text = _applied(change, texts[key])
            if text is None:
                states.refused.add(id(change))
            else:
                texts[key] = states.texts[key] = text
    return states


def write(tx: Tx, states: NewStates) -> None:
    bulk.with_batch(
        tx,
        "UPDATE agents SET memory = batch.memory FROM batch WHERE agents.address = batch.address",
        {"address": "TEXT", "memory": "TEXT"},
        sorted(states.texts.items()),
    )


def add(tx: Tx, address: str, before: str | None, state: str, now: float) -> None:
    """Write the state changes of a talk's turn, in the transaction that ends the turn."""
    row = tx.one(f"SELECT memory FROM agents WHERE address = :address{tx.for_update}", {"address": address})
    text = _rebased(StateWrite("", 0, before, state, None), (row[0] if row else "") or "")
    ids = {"address": address, "state": text, "now": now}
    tx.write("UPDATE agents SET memory = :state, last_active = :now WHERE address = :address", ids)


def _in_order(
    closings: Sequence[Closing], with_state: set[int], writes: Sequence[StateWrite]
) -> list[Closing | StateWrite]:
    changes: list[Closing | StateWrite] = []
    remaining = list(writes)
    for position, closing in enumerate(closings):
        while remaining and remaining[0].position <= position:
            changes.append(remaining.pop(0))
        if id(closing) in with_state:
            changes.append(closing)
    return changes + remaining


def _applied(c: Closing, stored: str) -> str | None:
    """Return the state with the turn's changes; None if it changed names whose stored values differ from its base."""
    before, state = c.state_before or "", c.state or "{}"
    if before == stored:
        return state
    return None if conflicting(before, state, stored) else json.dumps(merged(before, state, stored))


def _rebased(change: StateWrite, stored: str) -> str:
    if (change.state_before or "") == stored:
        return change.state
    return json.dumps(rebased(change.state_before, change.state, stored))


def _mark(tx: Tx, change: StateWrite) -> None:
    ids = {"id": change.envelope_id, "step": change.number, "mark": change.mark, "holder": change.address}
    if change.mark is None:
        tx.write("DELETE FROM steps WHERE envelope_id = :id AND kind = 'memory'", ids)
        return
    tx.write(
        "INSERT INTO steps (envelope_id, step, kind, name, result, done, created, holder)"
        " VALUES (:id, :step, 'memory', '', :mark, 1, roost_now(), :holder)"
        " ON CONFLICT (envelope_id, step) DO UPDATE SET result = excluded.result",
        ids,
    )
