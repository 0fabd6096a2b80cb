"""Audit list: sign-ins and actions of admins, newest first."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.accounts.users import AuditEntry, audit_text
from roost.core.talks.messages import at
from roost.ports import Tx


@dataclass(frozen=True, slots=True)
class Action:
    """Actor, action, address and time of an audit entry, known before the action is done."""

    entry_id: str
    now: float
    actor: str
    name: str
    address: str = ""


def add(tx: Tx, action: Action, target: str, detail: str = "") -> None:
    """Add an entry, in the transaction of what it records."""
    texts = {"actor": action.actor, "action": action.name, "address": action.address}
    texts |= {"target": target, "detail": detail}
    tx.write(
        "INSERT INTO audit (entry_id, at, actor, action, target, address, detail)"
        " VALUES (:entry, :now, :actor, :action, :target, :address, :detail)",
        {"entry": action.entry_id, "now": action.now} | {name: audit_text(text) for name, text in texts.items()},
    )


def listed(tx: Tx, limit: int, before: str) -> list[AuditEntry]:
    rows = tx.read(
        "SELECT entry_id, at, actor, action, target, address, detail FROM audit"
        f"{' WHERE entry_id < :before' if before else ''} ORDER BY entry_id DESC LIMIT :limit",
        {"before": before, "limit": limit},
    )
    return [AuditEntry(entry, at(time), *texts) for entry, time, *texts in rows]
