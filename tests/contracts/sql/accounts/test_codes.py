"""Used sign-in codes on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from roost.stores.sql.accounts import codes
from tests.contracts.conftest import Driven


def test_a_code_is_used_by_exactly_one_caller(store: Driven) -> None:
    with ThreadPoolExecutor(8) as pool:
        used = list(pool.map(lambda _: store.write(codes.use, "mark", 700.0, 100.0), range(8)))
    assert sorted(used) == [*[False] * 7, True]
    assert store.write(codes.use, "other", 700.0, 100.0)


def test_codes_that_have_expired_are_forgotten(store: Driven) -> None:
    store.write(codes.use, "old", 700.0, 100.0)
    assert not store.write(codes.use, "old", 700.0, 700.0)
    store.write(codes.use, "new", 1_300.0, 701.0)
    assert store.write(codes.use, "old", 700.0, 701.0), "no row is left"
