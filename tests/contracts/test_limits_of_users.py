"""Limits of a user hold on every store, also if many requests come at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import roost
from roost.errors import LimitReached
from roost.runtime.handlers import tokens

CREATE: dict[str, Callable[[roost.AgentService], object]] = {
    "tokens": lambda service: service.tokens.create("ann", "x"),
    "hooks": lambda service: service.hooks.create("ann", event="x"),
}


@pytest.mark.parametrize("kind", CREATE)
def test_a_limit_holds_for_many_requests_at_once(url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_TOKENS", 4)
    limits = roost.Limits(hooks_per_user=4)
    with roost.open(url, limits=limits) as service, ThreadPoolExecutor(16) as pool:
        tried = [pool.submit(CREATE[kind], service) for _ in range(48)]
        results = Counter(type(one.exception(60)) for one in tried)
        assert results == {type(None): 4, LimitReached: 44}
