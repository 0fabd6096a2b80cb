"""Events: published to whoever subscribed, and looked up again."""

from __future__ import annotations

from roost.runtime.hall import Hall
from roost.runtime.shop import Shop


class Events:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
