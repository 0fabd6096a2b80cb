"""Figures of the monitor. Each value is in one row, however wide its bucket is: a reader adds the rows of all widths.

Rows of the narrowest buckets are added by the process that has counted them. Later they are moved to wider buckets, in
small transactions, so that no value is lost or counted twice whatever is cut off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core.agents.agent import State
from roost.core.monitoring.figures import GAUGES, NARROW, WIDTHS, EdgeCount, FigureName
from roost.ports import Row, Tx
from roost.stores import bulk

_COLUMNS = bulk.columns("user_id, name, width, start, label, bin, count, total")
_KEY = "user_id, name, width, start, label, bin"
_ADD = (
    f" ON CONFLICT ({_KEY}) DO UPDATE SET count = figures.count + excluded.count,"
    " total = figures.total + excluded.total"
)
_ADD_SHARE = f" ON CONFLICT ({_KEY}) DO UPDATE SET total = figures.total + excluded.total"
_KEEP = f" ON CONFLICT ({_KEY}) DO NOTHING"
_WIDTHS = ", ".join(map(str, WIDTHS))
_GAUGES = ", ".join(f"'{name}'" for name in sorted(GAUGES))
_IS_BUSY = (
    f"name NOT IN ({_GAUGES}) OR (name = '{FigureName.QUEUE}' AND total > 0)"
    f" OR (name = '{FigureName.AGENTS}' AND label IN ('{State.ACTIVE}', '{State.WAITING}'))"
)
MOST_IN_QUEUE, MOST_AGENTS = 10_000, 2_000
"""Envelopes and agents that are counted for a sample."""
_SOME_AGENTS = "SELECT address, state FROM agents WHERE user_id = :user LIMIT :most"


@dataclass(frozen=True, slots=True, order=True)
class FigureRow:
    """Count and sum of a figure in a bucket."""

    user_id: str
    name: str
    start: int
    label: str
    bin: int
    count: int
    total: float
    width: int = NARROW

    @property
    def stored(self) -> tuple[object, ...]:
        return self.user_id, self.name, self.width, self.start, self.label, self.bin, self.count, self.total


def add(tx: Tx, rows: Sequence[FigureRow]) -> None:
    """Add counts of this process; those of users who have been deleted are dropped."""
    known = _known(tx, rows)
    _insert(tx, [row for row in rows if row.user_id in known], _ADD)


def add_samples(tx: Tx, rows: Sequence[FigureRow]) -> None:
    """Add the share of this process to samples of gauges."""
    known = _known(tx, rows)
    _insert(tx, [row for row in rows if row.user_id in known], _ADD_SHARE)


def keep_samples(tx: Tx, rows: Sequence[FigureRow]) -> None:
    """Write samples of what all processes see, unless another one has written them."""
    known = _known(tx, rows)
    _insert(tx, [row for row in rows if row.user_id in known], _KEEP)


def _known(tx: Tx, rows: Sequence[FigureRow]) -> set[str]:
    users = sorted({row.user_id for row in rows})
    return {row[0] for row in bulk.read(tx, "SELECT user_id FROM users WHERE user_id IN", users)}


def _insert(tx: Tx, rows: Sequence[FigureRow], ending: str) -> None:
    """Insert rows in the order of their keys: two processes that add to the same ones do not wait for each other."""
    if rows:
        bulk.insert(tx, "figures", _COLUMNS, [row.stored for row in sorted(rows)], ending)


def roll_up(tx: Tx, width: int, wider: int | None, before: int, most: int) -> int:
    """Move rows of buckets that start before a time to wider ones, or delete them; return their number."""
    some = f"SELECT {_KEY} FROM figures WHERE width = :width AND start < :before ORDER BY start LIMIT :most"
    gone = tx.write(
        f"DELETE FROM figures WHERE ({_KEY}) IN ({some}) RETURNING user_id, name, start, label, bin, count, total",
        {"width": width, "before": before, "most": most},
    )
    if wider is not None:
        sums: dict[tuple[str, str, int, str, int], list[float]] = defaultdict(lambda: [0, 0.0])
        for user_id, name, start, label, number, count, total in gone:
            values = sums[user_id, name, start // wider * wider, label, number]
            values[0] += count
            values[1] += total
        _insert(tx, [FigureRow(*key, int(count), total, wider) for key, (count, total) in sums.items()], _ADD)
    return len(gone)


def read(tx: Tx, user_id: str, since: int, until: int, width: int, name: str | None) -> list[Row]:
    """Return name, label, start, bin, count and sum of a user's figures, in buckets of this width."""
    names = [name] if name is not None else [one for one in FigureName if one is not FigureName.SENT]
    return tx.read(
        "SELECT name, label, start / :step * :step AS place, bin, SUM(count), SUM(total) FROM figures"
        f" WHERE user_id = :user AND name IN ({_listed(names)}) AND width IN ({_WIDTHS})"
        " AND start >= :since AND start < :until"
        " GROUP BY name, label, place, bin ORDER BY name, label, place, bin",
        {"user": user_id, "since": since, "until": until, "step": width},
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{FigureName(name)}'" for name in names)


def edges(tx: Tx, user_id: str, since: int, until: int, most: int) -> list[EdgeCount]:
    """Return who talks to whom, the most frequent pairs first."""
    rows = tx.read(
        f"SELECT label, SUM(count) AS messages FROM figures WHERE user_id = :user AND name = '{FigureName.SENT}'"
        f" AND width IN ({_WIDTHS}) AND start >= :since AND start < :until"
        " GROUP BY label ORDER BY messages DESC, label LIMIT :most",
        {"user": user_id, "since": since, "until": until, "most": most},
    )
    pairs = ((label.partition("\n"), int(count)) for label, count in rows)
    return [EdgeCount(sender, recipient, count) for (sender, _, recipient), count in pairs]


# --- samples -------------------------------------------------------------------------------------


def busy_users(tx: Tx, since: int, start: int, after: str, most: int) -> list[str]:
    """Return users after `after` with something to sample: who did something in these buckets, or had a queue."""
    rows = tx.read(
        f"SELECT DISTINCT user_id FROM figures WHERE width = {NARROW} AND start >= :since AND start <= :start"
        f" AND user_id > :after AND ({_IS_BUSY}) ORDER BY user_id LIMIT :most",
        {"since": since, "start": start, "after": after, "most": most},
    )
    return [row[0] for row in rows]


def sample(tx: Tx, user_id: str, start: int) -> list[FigureRow]:
    """Return the depth of a user's inboxes and the number of agents by the state in which they rest.

    Nothing for a user with many agents: counting must not take longer than a moment.
    """
    ids = {"user": user_id, "most": MOST_AGENTS + 1, "deepest": MOST_IN_QUEUE}
    states = tx.read(f"SELECT state, count(*) FROM ({_SOME_AGENTS}) AS counted GROUP BY state", ids)
    if sum(count for _, count in states) > MOST_AGENTS:
        return []
    [(depth,)] = tx.read(
        f"SELECT count(*) FROM (SELECT 1 FROM ({_SOME_AGENTS}) AS counted JOIN inbox i"
        " ON i.address = counted.address AND i.address <> '' LIMIT :deepest) AS waiting",
        ids,
    )
    rows = [FigureRow(user_id, FigureName.QUEUE, start, "", 0, 1, float(depth))]
    return rows + [FigureRow(user_id, FigureName.AGENTS, start, state, 0, 1, float(n)) for state, n in states]
