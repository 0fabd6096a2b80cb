"""Recovery after a crash: envelopes that may have been running are marked as suspects; nothing else is counted."""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.agents.agent import AgentConfig, State
from roost.core.failures.suspicion import Suspicion
from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql.tables.disabled import is_disabled

_HEADS = (
    "SELECT h.address, h.head, h.begun, a.config FROM"
    " (SELECT address, lane, min(envelope_id) AS head, min(rank) AS rank,"
    " max(CASE WHEN EXISTS (SELECT 1 FROM steps s WHERE s.envelope_id = inbox.envelope_id) THEN 1 ELSE 0 END) AS begun"
    " FROM inbox WHERE address <> '' AND kind <> 'talk' AND due <= :now AND status <> 'parked'"
    " AND suspect < :quarantined{of_node} GROUP BY address, lane) h JOIN agents a ON a.address = h.address"
    f" WHERE a.state = :idle AND a.paused = 0 AND NOT {is_disabled('a.user_id')} ORDER BY h.address, h.rank, h.head"
)
_TALKS = (
    "SELECT min(envelope_id) FROM inbox WHERE kind = 'talk' AND due <= :now AND status <> 'parked'"
    " AND suspect < :quarantined{of_node} GROUP BY lane"
)
_OF_NODE = (
    " AND (EXISTS (SELECT 1 FROM agents o WHERE o.address = inbox.address AND o.node = :node)"
    " OR inbox.address = '' AND EXISTS (SELECT 1 FROM talks o WHERE o.talk_id = inbox.lane AND o.node = :node))"
)
"""Condition: an envelope belongs to one node."""


_CLOSED = "0"
"""Stored in place of a process name: the last process was closed."""
_SIBLINGS = 100
"""Largest number of envelopes of an agent that are quarantined after one of them crashed."""


def recover(tx: Tx, now: float, process: str) -> int:
    """Register a process. If the previous one crashed, mark what may have been running as suspect.

    An attempt in quarantine counts. Return the number of suspects.
    """
    row = tx.one("SELECT value FROM meta WHERE name = 'running'")
    if row is not None and row[0] == process:
        return 0
    _set_process(tx, process)
    if row is None or row[0] == _CLOSED:
        return 0
    return mark_suspects(tx, now)


def mark_suspects(tx: Tx, now: float, node: str = "") -> int:
    """Mark what may have been running, on one node or on all, when its process died; return how many."""
    _count_attempts(tx, node)
    suspects = _possibly_running(tx, now, node)
    bulk.write(tx, "UPDATE inbox SET suspect = suspect + 1 WHERE envelope_id IN", suspects)
    return len(suspects)


def retire(tx: Tx) -> None:
    """Unregister a process that is closing: what it leaves is not suspect."""
    _set_process(tx, _CLOSED)
    return_to_quarantine(tx)


def return_to_quarantine(tx: Tx, node: str = "") -> None:
    """Return envelopes of one node, or of all, to quarantine that were running there or had left it."""
    sql = f"UPDATE inbox SET suspect = :quarantined WHERE suspect > :quarantined{_of_node(node)}"
    tx.write(sql, {"quarantined": int(Suspicion.QUARANTINED), "node": node})


def isolate(tx: Tx, envelope_ids: Sequence[str]) -> bool:
    """Record that these start in quarantine; return False if none of them exists any more."""
    sql = f"UPDATE inbox SET suspect = {int(Suspicion.ISOLATED)} WHERE envelope_id IN"
    return bool(bulk.write(tx, sql, envelope_ids, " RETURNING envelope_id"))


def step_out(tx: Tx, envelope_ids: Sequence[str]) -> None:
    """Record that these left quarantine to wait for an answer."""
    sql = f"UPDATE inbox SET suspect = {int(Suspicion.OUTSIDE)} WHERE suspect = {int(Suspicion.ISOLATED)}"
    bulk.write(tx, f"{sql} AND envelope_id IN", envelope_ids)


def _of_node(node: str) -> str:
    return _OF_NODE if node else ""


def _count_attempts(tx: Tx, node: str) -> None:
    """Count an attempt of envelopes in quarantine or, if there are none, of those that left it to wait for an answer.

    The agent's next envelopes may be like the one that crashed: they go to quarantine at once, and not after two more
    crashes, which would count against whatever is in quarantine by then.
    """
    count = f"UPDATE inbox SET attempts = attempts + 1 WHERE suspect = :mark{_of_node(node)} RETURNING address"
    counted = tx.write(count, {"mark": int(Suspicion.ISOLATED), "node": node})
    if not counted:
        tx.write(count, {"mark": int(Suspicion.OUTSIDE), "node": node})
    for address in sorted({row[0] for row in counted if row[0]}):
        tx.write(
            "UPDATE inbox SET suspect = :mark WHERE suspect < :mark AND envelope_id IN (SELECT envelope_id FROM inbox"
            " WHERE address = :address AND address <> '' ORDER BY envelope_id LIMIT :most)",
            {"mark": int(Suspicion.QUARANTINED), "address": address, "most": _SIBLINGS},
        )
    return_to_quarantine(tx, node)


def _set_process(tx: Tx, value: str) -> None:
    tx.write(
        "INSERT INTO meta (name, value) VALUES ('running', :value) ON CONFLICT (name) DO UPDATE SET value = :value",
        {"value": value},
    )


def _possibly_running(tx: Tx, now: float, node: str) -> list[str]:
    """Return envelopes that may have been running: the heads of each agent's first lanes, each talk's next message.

    Envelopes with recorded steps were certainly started: a turn that waits for an answer frees its slot. For the rest,
    starts are not recorded, since that would cost a write for each turn.
    """
    bounds = {"now": now, "quarantined": int(Suspicion.QUARANTINED), "node": node}
    suspects = [row[0] for row in tx.read(_TALKS.format(of_node=_of_node(node)), bounds)]
    heads = _HEADS.format(of_node=_of_node(node))
    count: dict[str, int] = {}
    most: dict[str, int] = {}
    for address, head, begun, config in tx.read(heads, {**bounds, "idle": str(State.IDLE)}):
        if address not in most:
            most[address] = AgentConfig.from_json(config).max_concurrent_tasks
        count[address] = count.get(address, 0) + 1 - begun
        if begun or count[address] <= most[address]:
            suspects.append(head)
    return suspects
