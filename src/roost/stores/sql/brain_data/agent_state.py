"""State of agents as turns leave it: each change is applied to the values it was based on.

A turn whose base values have changed, because another turn was refused or a person edited them, is refused too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from roost.core.envelopes.outcomes import MemoryWrite
from roost.core.memory.state_merge import conflicting, merged, rebased
from roost.core.runs import Closing, Verdict
from roost.ports import Tx
from roost.stores import bulk


@dataclass(slots=True)
class Memories:
    """State of agents after these closings, and the closings that were based on other values."""

    texts: dict[str, str] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    """Refused closings, by the id of the object."""


def remembered(tx: Tx, closings: Sequence[Closing], ours: Sequence[Closing], writes: Sequence[MemoryWrite]) -> Memories:
    """Compute the states in the order of the changes; `ours` are the closings that may be settled at all."""
    memories = Memories()
    told = [c for c in ours if c.state is not None and c.verdict is Verdict.DONE]
    if not told and not writes:
        return memories
    locked = f" ORDER BY envelope_id{tx.for_update}"
    ids = sorted({c.envelope.envelope_id for c in told})
    there = {row[0] for row in bulk.among(tx, "SELECT envelope_id FROM inbox WHERE envelope_id IN", ids, locked)}
    keys = sorted({c.envelope.address for c in told} | {w.address for w in writes})
    locked = f" ORDER BY address{tx.for_update}"
    rows = bulk.among(tx, "SELECT address, epoch, memory FROM agents WHERE address IN", keys, locked)
    epochs, texts = {row[0]: row[1] for row in rows}, {row[0]: row[2] or "" for row in rows}
    for change in _in_order(closings, {id(c) for c in told}, writes):
        if isinstance(change, MemoryWrite):
            if epochs.get(change.address) == change.epoch:
                texts[change.address] = memories.texts[change.address] = _added(change, texts[change.address])
                _mark(tx, change)
        elif change.envelope.envelope_id in there:
            key = change.envelope.address
            text = _followed(change, texts[key])
            if text is None:
                memories.refused.add(id(change))
            else:
                texts[key] = memories.texts[key] = text
    return memories


def write(tx: Tx, memories: Memories) -> None:
    bulk.using(
        tx,
        "UPDATE agents SET memory = given.memory FROM given WHERE agents.address = given.address",
        {"address": "TEXT", "memory": "TEXT"},
        sorted(memories.texts.items()),
    )


def add(tx: Tx, address: str, knew: str | None, memory: str, now: float) -> None:
    """Write the state changes of a talk's turn, in the transaction that ends the turn."""
    row = tx.one(f"SELECT memory FROM agents WHERE address = :address{tx.for_update}", {"address": address})
    text = _added(MemoryWrite("", 0, knew, memory, None), (row[0] if row else "") or "")
    ids = {"address": address, "memory": text, "now": now}
    tx.write("UPDATE agents SET memory = :memory, last_active = :now WHERE address = :address", ids)


def _in_order(
    closings: Sequence[Closing], told: set[int], writes: Sequence[MemoryWrite]
) -> list[Closing | MemoryWrite]:
    changes: list[Closing | MemoryWrite] = []
    left = list(writes)
    for place, closing in enumerate(closings):
        while left and left[0].position <= place:
            changes.append(left.pop(0))
        if id(closing) in told:
            changes.append(closing)
    return changes + left


def _followed(c: Closing, there: str) -> str | None:
    """Return the state with the turn's changes; None if it changed names that differ from what it knew."""
    knew, memory = c.knew or "", c.state or "{}"
    if knew == there:
        return memory
    return None if conflicting(knew, memory, there) else json.dumps(merged(knew, memory, there))


def _added(change: MemoryWrite, there: str) -> str:
    if (change.knew or "") == there:
        return change.memory
    return json.dumps(rebased(change.knew, change.memory, there))


def _mark(tx: Tx, change: MemoryWrite) -> None:
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
