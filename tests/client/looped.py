"""The client with coroutines, called as if it were plain: on a loop that turns while somebody waits for an answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

from roost.client import RemoteService, aconnect


@contextmanager
def connect(url: str, token: str | None = None, **options: Any) -> Iterator[RemoteService]:
    with asyncio.Runner() as runner:
        service = aconnect(url, token, **options)
        yield cast(RemoteService, Looped(service, runner))
        runner.run(service.close())


class Looped:
    def __init__(self, wrapped: Any, runner: asyncio.Runner) -> None:
        self._asynchronous, self._runner = wrapped, runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._asynchronous, name)
        if isinstance(found, str):
            return found
        return self._called(found) if callable(found) else Looped(found, self._runner)

    def _called(self, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            given = method(*args, **options)
            return self._runner.run(given) if inspect.iscoroutine(given) else self._each(given)

        return call

    def _each(self, stream: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(stream, None)

        while (found := self._runner.run(following())) is not None:
            yield found
