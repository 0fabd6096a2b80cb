"""Timers: one row for each agent and name."""

from __future__ import annotations

from collections.abc import Sequence

from roost.ports import Tx
from roost.stores import bulk


def arm(tx: Tx, key: str, name: str, due: float, *, earlier: bool = False) -> None:
    """Set a timer; with `earlier` only if no earlier one is set."""
    arm_all(tx, [(key, name, due)], " WHERE timers.due > excluded.due" if earlier else "")


def arm_all(tx: Tx, timers: Sequence[tuple[str, str, float]], only: str = "") -> None:
    """Set timers. After the commit the store's listener gets the earliest due time."""
    if not timers:
        return
    first = min(due for _, _, due in timers)
    tx.armed = first if tx.armed is None else min(first, tx.armed)
    ending = f" ON CONFLICT (address, key) DO UPDATE SET due = excluded.due{only}"
    bulk.insert(tx, "timers", ("address", "key", "due"), timers, ending)
