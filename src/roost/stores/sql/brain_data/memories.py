"""Memories of agents, and the index of their words. Queries for a user include the owner.

The index is an ordinary table, the same on every database: a forgotten memory is gone from it in the same transaction,
and other agents' memories do not affect results or their order. Results are ordered by the number of matching
characters, then newest first, on every store.
"""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.brain_data.memories import QUERY_WORDS, Memory, Remember, check_room, words
from roost.core.talks.messages import at
from roost.core.values.addresses import unknown
from roost.errors import NotFound
from roost.ports import Tx
from roost.stores import bulk, locking

_WORDS = ("address", "word", "number")
_AMONG = f"IN ({', '.join('?' * QUERY_WORDS)})"


@locking.locks(locking.by_user_and_agent)
def remember(tx: Tx, user_id: str, agent_id: str, key: str, text: str, now: float, most: int) -> Memory:
    """Set the memory under a key, as the newest one. Raise LimitReached beyond `most`."""
    effect = Remember(_locked(tx, user_id, agent_id), key, text, now)
    exists, count = find_key(tx, effect.address, key)
    if not exists:
        check_room(count, most)
    _put(tx, effect)
    return Memory(key, text, at(now))


@locking.locks(locking.by_user_and_agent)
def forget(tx: Tx, user_id: str, agent_id: str, key: str) -> bool:
    """Delete a memory; return False if there is none."""
    return _remove(tx, _locked(tx, user_id, agent_id), key)


def apply(tx: Tx, effect: Remember) -> tuple[()]:
    """Apply an effect of a turn as it is settled. The lock on the agent's row keeps numbers unique."""
    row = tx.one(f"SELECT 1 FROM agents WHERE address = :address{tx.for_update}", {"address": effect.address})
    if row is not None:
        _put(tx, effect)
    return ()


def listed(
    tx: Tx, user_id: str, agent_id: str, wanted: Sequence[str] | None, limit: int, before: str | None
) -> list[Memory]:
    """Return memories with any of the words; with None all, newest first. `before`: start after that one."""
    ids = {"user": user_id, "agent": agent_id}
    if tx.one("SELECT 1 FROM agents WHERE user_id = :user AND agent_id = :agent", ids) is None:
        raise unknown(agent_id)
    address = f"{user_id}/{agent_id}"
    if before is not None and not find_key(tx, address, before)[0]:
        raise NotFound(f"there is no memory {before!r:.80}: it was forgotten, or it never existed")
    return search(tx, address, wanted, limit, before)


def search(tx: Tx, address: str, wanted: Sequence[str] | None, limit: int, before: str | None = None) -> list[Memory]:
    """Return memories like `listed`, for the agent itself: the owner is not checked."""
    if wanted is not None and not wanted:
        return []
    after = () if before is None else (address, before)
    if wanted is None:
        rows = tx.read(_newest(paged=bool(after)), [address, *after, limit])
    else:
        rows = tx.read(_matching(paged=bool(after)), [address, *_padded(wanted), *after, limit, address])
    return [Memory(key, text, at(created)) for key, text, created in rows]


def find_key(tx: Tx, address: str, key: str) -> tuple[bool, int]:
    """Return whether there is a memory under the key, and how many there are."""
    ids = {"address": address, "key": key}
    row = tx.one("SELECT 1 FROM memories WHERE address = :address AND key = :key", ids)
    return row is not None, count(tx, address)


def count(tx: Tx, address: str) -> int:
    row = tx.one("SELECT count(*) FROM memories WHERE address = :address", {"address": address})
    return row[0] if row else 0


# --- inside ------------------------------------------------------------------------------------------


def _locked(tx: Tx, user_id: str, agent_id: str) -> str:
    row = tx.one(
        f"SELECT address FROM agents WHERE user_id = :user AND agent_id = :agent{tx.for_update}",
        {"user": user_id, "agent": agent_id},
    )
    if row is None:
        raise unknown(agent_id)
    return str(row[0])


def _put(tx: Tx, effect: Remember) -> None:
    """Replace the memory under the key, as the newest one."""
    _remove(tx, effect.address, effect.key)
    if effect.text is None:
        return
    rows = tx.write(
        "INSERT INTO memories (address, number, key, text, created)"
        " SELECT :address, COALESCE(max(number), 0) + 1, :key, :text, :created FROM memories WHERE address = :address"
        " RETURNING number",
        {"address": effect.address, "key": effect.key, "text": effect.text, "created": effect.created},
    )
    number = rows[0][0]
    bulk.insert(tx, "memory_words", _WORDS, [(effect.address, word, number) for word in words(effect.text)])


def _remove(tx: Tx, address: str, key: str) -> bool:
    rows = tx.write(
        "DELETE FROM memories WHERE address = :address AND key = :key RETURNING number, text",
        {"address": address, "key": key},
    )
    for number, text in rows:
        found = words(text)
        for start in range(0, len(found), QUERY_WORDS):
            part = _padded(found[start : start + QUERY_WORDS])
            tx.write(
                f"DELETE FROM memory_words WHERE address = ? AND number = ? AND word {_AMONG}", [address, number, *part]
            )
    return bool(rows)


def _newest(*, paged: bool) -> str:
    after = " AND number < (SELECT number FROM memories WHERE address = ? AND key = ?)" if paged else ""
    return f"SELECT key, text, created FROM memories WHERE address = ?{after} ORDER BY number DESC LIMIT ?"


def _matching(*, paged: bool) -> str:
    """Return the query that ranks matches before it reads any text."""
    after = (
        " WHERE (score, number) < (SELECT f.score, f.number FROM found f"
        " JOIN memories b ON b.address = ? AND b.number = f.number WHERE b.key = ?)"
    )
    return (
        "WITH found AS (SELECT number, sum(length(word)) AS score FROM memory_words"
        f" WHERE address = ? AND word {_AMONG} GROUP BY number),"
        f" chosen AS (SELECT number, score FROM found{after if paged else ''}"
        " ORDER BY score DESC, number DESC LIMIT ?)"
        " SELECT m.key, m.text, m.created FROM chosen c JOIN memories m ON m.address = ? AND m.number = c.number"
        " ORDER BY c.score DESC, c.number DESC"
    )


def _padded(found: Sequence[str]) -> list[str]:
    """Repeat the last word to fill `_AMONG`, so that there are few statement texts."""
    return [*found, *[found[-1]] * (QUERY_WORDS - len(found))]
