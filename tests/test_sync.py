"""Plain methods made of coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from roost.hosts.pending import HostPending
from roost.sync import iterate


def test_a_stream_is_closed_with_the_loop_over_it() -> None:
    told: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            told.append("closed")

    assert list(iterate(numbers())) == [1, 2]
    stream = iterate(numbers())
    assert next(stream) == 1
    assert told == ["closed"]
    stream.close()  # type: ignore[attr-defined]
    assert told == ["closed", "closed"]


def test_what_interrupts_the_waiting_for_a_stream_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> AsyncIterator[int]:
        yield await HostPending[int]()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HostPending, "call_when_done", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(iterate(never()))
