"""The capacity of inboxes, which writers share: each may forget it at any moment, when it rolls back."""

from __future__ import annotations

from typing import Any

import pytest

from roost.ports import Tx
from roost.stores.sql.tables import capacity
from tests.contracts.conftest import Driven


class Forgetful(dict[str, int]):
    """Capacity that another writer forgets after a number of looks at it."""

    def __init__(self, known: dict[str, int], looks: int) -> None:
        super().__init__(known)
        self._left = looks

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self._looked()
        return found

    def get(self, key: str, default: Any = None) -> Any:
        found = super().get(key, default)
        self._looked()
        return found

    def _looked(self) -> None:
        self._left -= 1
        if not self._left:
            self.clear()


def used(tx: Tx) -> None:
    capacity.subtract(tx, "ann/d")


def lacks(tx: Tx) -> dict[str, int]:
    return capacity.without_room(tx, {"ann/d": 1})


@pytest.mark.parametrize(("op", "looks"), [(used, 1), (lacks, 1), (lacks, 2)])
def test_capacity_that_is_forgotten_meanwhile_is_no_error(store: Driven, op: Any, looks: int) -> None:
    def forgetful(tx: Tx) -> Any:
        tx.capacity = Forgetful({"ann/d": 0}, looks)
        return op(tx)

    assert not store.write(forgetful)
