"""P6: the asynchronous client waits for many results at once on one loop, and cancels them on request."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

import roost
from roost.client import AsyncRemoteService, RemoteService, aconnect
from tests.api.serving import Served

T = TypeVar("T")


def told(served: Served, story: Callable[[AsyncRemoteService], Awaitable[T]]) -> T:
    async def main() -> T:
        async with aconnect(served.url, served.identity.token) as service:
            return await story(service)

    return asyncio.run(main())


async def answered(service: AsyncRemoteService, words: str) -> str:
    talk = await service.create_talk_session("ann", profile="parrot")
    await service.add_message("ann", talk, words)
    return "".join([change.text async for change in service.stream_messages("ann", talk)])


def test_many_talks_are_watched_at_once_on_one_loop(served: Served) -> None:
    async def story(service: AsyncRemoteService) -> list[str]:
        return await asyncio.gather(*(answered(service, f"word{number}") for number in range(12)))

    assert told(served, story) == [f"word{number}word{number} " for number in range(12)]


def test_the_loop_turns_while_a_task_is_waited_for(served: Served) -> None:
    async def story(service: AsyncRemoteService) -> roost.Task:
        await service.agents.create("ann", "d", profile="parrot", start=False)
        task = await service.tasks.send("ann", "d", "hello")
        waiting = asyncio.create_task(service.tasks.wait("ann", task))
        await service.agents.start("ann", "d")
        return await waiting

    assert told(served, story).result == "hello "


def test_what_is_cancelled_leaves_its_connection(served: Served) -> None:
    async def story(service: AsyncRemoteService) -> bool:
        await service.agents.create("ann", "d", start=False)
        task = await service.tasks.send("ann", "d", "never")
        waiting = asyncio.create_task(service.tasks.wait("ann", task))
        over, _ = await asyncio.wait([waiting], timeout=0.05)
        waiting.cancel()
        await asyncio.wait([waiting])
        await service.health()
        return waiting.cancelled() and not over

    assert told(served, story) is True


def test_facts_are_followed_from_the_first_look_on(served: Served) -> None:
    async def story(service: AsyncRemoteService) -> roost.Fact:
        looking = asyncio.ensure_future(anext(service.monitor.follow("ann")))
        number = 0
        while not looking.done():
            await service.agents.create("ann", f"d{number}", start=False)
            number += 1
        return await looking

    assert (told(served, story).about or "").startswith("ann/d")


def test_both_forms_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, inspect.Signature]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: inspect.signature(one) for name, one in found if name[0] != "_"}

    plain, coroutines = methods(RemoteService), methods(AsyncRemoteService)
    stream = {"stream_messages"}
    assert {name: one for name, one in plain.items() if name not in stream} == {
        name: one for name, one in coroutines.items() if name not in stream
    }
    assert plain.keys() == coroutines.keys()
