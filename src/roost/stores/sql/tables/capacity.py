"""Capacity of inboxes: `inbox_limit` is checked where envelopes are written, without counting each time.

`tx.capacity` holds a lower bound of the free places by address: the last exact count, less everything written since.
Handled envelopes only free places, so no envelope is refused or accepted wrongly: when the bound does not suffice, the
inbox is counted again. On a store with several writers, concurrent writes may exceed the limit by their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.envelope import Envelope
from roost.core.values.addresses import of_key
from roost.errors import LimitReached
from roost.ports import Tx
from roost.stores import bulk

CACHE_SIZE = 100_000
"""Largest number of cached inboxes."""


def subtract(tx: Tx, address: str, count: int = 1) -> None:
    """Subtract envelopes that are written from the cached number of free places."""
    free = tx.capacity
    places = free.get(address)
    if places is not None:  # looked up once: another writer may forget it in between
        free[address] = places - count


def forget(tx: Tx, addresses: Iterable[str]) -> None:
    """Drop the bounds of agents that are new, deleted, or have a new limit."""
    for address in addresses:
        tx.capacity.pop(address, None)


def without_room(tx: Tx, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return the inboxes without room for this many more envelopes, each with its free places."""
    free = tx.capacity
    uncertain = [address for address, count in wanted.items() if free.get(address, 0) < count]
    counted = _count(tx, sorted(uncertain)) if uncertain else {}
    return {address: max(0, room) for address, room in counted.items() if room < wanted[address]}


def overflow(tx: Tx, envelopes: Iterable[Envelope]) -> frozenset[str]:
    """Return the ids of the envelopes that exceed the limit, the last ones of each inbox."""
    room = without_room(tx, Counter(e.address for e in envelopes))
    if not room:
        return frozenset()
    refused: list[str] = []
    for envelope in envelopes:
        if envelope.address in room:
            room[envelope.address] -= 1
            if room[envelope.address] < 0:
                refused.append(envelope.envelope_id)
    return frozenset(refused)


def check(tx: Tx, address: str) -> None:
    """Raise LimitReached if the inbox is full."""
    if address in without_room(tx, {address: 1}):
        raise full_error(tx, address)


def full_error(tx: Tx, address: str) -> LimitReached:
    row = tx.one("SELECT config FROM agents WHERE address = :address", {"address": address})
    limit = f" ({AgentConfig.from_json(row[0]).inbox_limit:,})" if row else ""
    return LimitReached(
        f"the inbox of the agent {of_key(address).agent_id!r} is full{limit}: try again when it has handled some"
    )


def _count(tx: Tx, addresses: list[str]) -> dict[str, int]:
    """Count and cache the free places of each inbox of an existing agent."""
    if len(tx.capacity) + len(addresses) > CACHE_SIZE:
        tx.capacity.clear()
    depths = {row[0]: row[1] for row in bulk.read(tx, _DEPTHS, addresses, " GROUP BY address")}
    agents = bulk.read(tx, "SELECT address, config FROM agents WHERE address IN", addresses)
    counted = {key: AgentConfig.from_json(config).inbox_limit - depths.get(key, 0) for key, config in agents}
    tx.capacity.update(counted)
    return counted


_DEPTHS = "SELECT address, count(*) FROM inbox WHERE address <> '' AND address IN"
