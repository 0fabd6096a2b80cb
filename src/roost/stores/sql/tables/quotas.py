"""Numbers of talks and agents that users may have, checked without counting each time.

`tx.capacity` holds an upper bound of each number: the last count, and everything added since. Rows are counted again
when the bound does not suffice, and after every `RECOUNT` additions, so that several processes exceed a limit by few.
"""

from __future__ import annotations

from roost.ports import Tx

RECOUNT = 100


def reserve(tx: Tx, table: str, user_id: str, new: int, most: int) -> bool:
    """Count new rows of `talks` or `agents` in advance; return False if the user would have more than `most`."""
    key = _key(table, user_id)
    known = tx.capacity.get(key)
    if known is None or known + new > most or known // RECOUNT != (known + new) // RECOUNT:
        known = count(tx, table, user_id)
        if known + new > most:
            return False
        tx.write("INSERT INTO users (user_id) VALUES (:user) ON CONFLICT (user_id) DO NOTHING", {"user": user_id})
    tx.capacity[key] = known + new
    return True


def count(tx: Tx, table: str, user_id: str) -> int:
    row = tx.one(f"SELECT count(*) FROM {table} WHERE user_id = :user", {"user": user_id})
    return int(row[0]) if row else 0


def forget(tx: Tx, user_id: str) -> None:
    """Drop the bounds of a user who is deleted."""
    for table in ("talks", "agents"):
        tx.capacity.pop(_key(table, user_id), None)


def _key(table: str, user_id: str) -> str:
    return f"{table}\n{user_id}"  # no address has a line break
