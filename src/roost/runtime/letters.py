"""Dead letters: what could not be handled, looked at, retried and dropped."""

from __future__ import annotations

from roost.runtime.hall import Hall
from roost.runtime.shop import Shop


class DeadLetters:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
