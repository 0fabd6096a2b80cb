"""A15: however figures are counted, added and moved to wider buckets, their sums stay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.hosts.threads import ThreadHost
from roost.ports import Tx
from roost.stores.engine import Engine
from roost.stores.sql import figures
from roost.stores.sql.figures import FigureRow
from roost.wiring import database
from tests.contracts.conftest import Driven
from tests.servers import new_store

SPAN = 4 * 900
ROWS = st.builds(
    lambda start, name, number, count: FigureRow("ann", name, start * 10, "", number, count, float(2 * count)),
    st.integers(0, SPAN // 10 - 1),
    st.sampled_from(["runs", "tokens", "errors"]),
    st.integers(0, 2),
    st.integers(1, 1_000),
)
ADDED = st.lists(ROWS, max_size=12, unique_by=lambda row: (row.start, row.name, row.bin))
ROLLED = st.tuples(st.sampled_from([(10, 60), (60, 900)]), st.integers(0, SPAN), st.integers(1, 20))


def sums(store: Driven, width: int) -> Counter[tuple[str, int, int]]:
    rows = store.read(figures.read, "ann", 0, SPAN, width, None)
    assert all(float(total) == 2 * int(count) for *_, count, total in rows)
    return Counter({(name, int(start), number): int(count) for name, _, start, number, count, _ in rows})


@given(st.lists(st.one_of(ADDED, ROLLED), max_size=12))
@settings(max_examples=25, deadline=None)
def test_no_value_is_lost_or_counted_twice(steps: list[list[FigureRow] | tuple[tuple[int, int], int, int]]) -> None:
    with TemporaryDirectory() as folder:
        host = ThreadHost()
        engine = Engine(host, database(new_store(Path(folder) / "roost.db"), host.clock.now), queued=1_000)
        store = Driven(engine)
        try:
            store.write(_know)
            expected: Counter[tuple[str, int, int]] = Counter()
            for step in steps:
                if isinstance(step, list):
                    store.write(figures.add, step)
                    for row in step:
                        expected[row.name, row.start // 900 * 900, row.bin] += row.count
                else:
                    (width, wider), before, most = step
                    store.write(figures.roll_up, width, wider, before // wider * wider, most)
                assert sums(store, 900) == expected
        finally:
            engine.close()


def _know(tx: Tx) -> None:
    tx.write("INSERT INTO users (user_id) VALUES ('ann')")
