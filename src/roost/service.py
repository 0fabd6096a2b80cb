"""AgentService: the face of a Roost, for pages and scripts; and the same as coroutines, for servers.

This is the one place where plain threads cross over into the runtime: each plain method drives the
coroutine of the same name to its end, without an event loop, so that it works everywhere, also on a
thread whose event loop is running (a notebook).
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roost.brains.profiles import Shelf
from roost.core.health import Health
from roost.core.limits import Limits
from roost.core.messages import PAGE, Change, Message, Page
from roost.core.talks import Receipt, Talk
from roost.faces import AsyncFaces, PlainFaces, each, plain
from roost.hosts.pending import drive
from roost.ports import Brain, Profile, Tool
from roost.runtime.roost import Roost
from roost.runtime.talk import Talks
from roost.wiring import default_url, from_settings, is_configured, models_folder, open_roost, read_secrets

SWITCH_INTERVAL = 5e-4
"""Beside a brain that burns CPU, a stop would wait for many of the default 5 ms."""
COLLECTED_AFTER = 50_000
"""So many more objects than before, and the collector looks through the young ones: by default after some ten turns."""


class AsyncAgentService(AsyncFaces):
    """All that can be done with talks, as coroutines. Every method takes the user first, and reaches only theirs.

    What is not theirs is NotFound, just as what does not exist. Bad input is Invalid and changes nothing.
    """

    def __init__(self, roost: Roost) -> None:
        self.roost = roost
        super().__init__(lambda name: getattr(roost, name))
        self._talks: Talks = roost.talks
        self._known = roost.shop.talks.known

    async def create_talk_session(
        self,
        user_id: str,
        *,
        profile: str | None = None,
        agent: str | None = None,
        busy: str = "interrupt",
        title: str | None = None,
        model: str | None = None,
        temperature: float | None = None,
        instructions: str | None = None,
    ) -> str:
        """Start a talk with a profile (the default one if none is named); its id.

        `busy` says what a new message does while an answer is being written: interrupt, queue, reject,
        rollback, steer or collect.
        """
        options = {"model": model, "temperature": temperature, "instructions": instructions}
        return await self._talks.create(user_id, profile, agent, busy, title, options)

    async def list_sessions(self, user_id: str, *, limit: int = PAGE, before: str | None = None) -> list[Talk]:
        """The user's talks, last used first; `before` is the id of the last one of the page before."""
        return await self._talks.listed(user_id, limit, before)

    async def get_session(self, user_id: str, talk_session_id: str) -> Talk:
        return await self._talks.get(user_id, talk_session_id)

    async def rename(self, user_id: str, talk_session_id: str, title: str) -> Talk:
        return await self._talks.change(user_id, talk_session_id, None, None, title, None)

    async def configure(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        title: str | None = None,
        profile: str | None = None,
        busy: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Talk:
        """Change the title, and how the talk goes on from the next answer: all of it, or nothing if any is refused.

        `options` (model, temperature, instructions) replace those that were set.
        """
        return await self._talks.change(user_id, talk_session_id, profile, busy, title, options)

    async def delete(self, user_id: str, talk_session_id: str) -> None:
        """Stop it and remove it with everything that belongs to it."""
        await self._talks.delete(user_id, talk_session_id)

    async def add_message(
        self,
        user_id: str,
        talk_session_id: str,
        content: str,
        *,
        key: str | None = None,
        busy: str | None = None,
    ) -> Message:
        """Keep the message, stop the run under way (see `busy`), and return: the answer comes by itself.

        Waits for the disk, never for the agent. With the same `key` and content again it gives the message
        that is there and changes nothing; with other content it is a Conflict.
        """
        return await self._talks.add_message(user_id, talk_session_id, content, key, busy)

    async def get_messages(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        after: str | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> Page:
        """The newest messages; with `after` (a page's cursor) what is new since; with `before` (a number) older ones.

        A message that is being written comes again, with all its text so far, when it has grown.
        """
        return await self._talks.get_messages(user_id, talk_session_id, after, before, limit)

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """What there is, then each piece as it is written. Waits; ends when the run does, or never with `follow`."""
        return self._talks.stream(user_id, talk_session_id, after, follow)

    async def stop(self, user_id: str, talk_session_id: str, *, wait: float = 0.0) -> Receipt:
        """Stop the run under way and drop what waits. Waits up to `wait` seconds for it to be at rest."""
        return await self._talks.stop(user_id, talk_session_id, wait)

    def profiles(self) -> Sequence[Profile]:
        """What can be talked with, the default first."""
        return self.roost.shop.brains.names()

    def health(self) -> Health:
        return self.roost.health()

    async def close(self) -> None:
        """Let running answers end, for a bounded time; keep what did not end for the next start."""
        await self.roost.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AgentService(PlainFaces):
    """The same as plain methods, for any number of threads; see AsyncAgentService for what each does.

    Methods that write wait for the disk. `stream_messages` and `stop(wait=…)` wait for the agent; the others never do.
    """

    def __init__(self, roost: Roost) -> None:
        self.roost = roost
        self.asynchronous = self._face = AsyncAgentService(roost)
        super().__init__(self.asynchronous)
        self._known = roost.shop.talks.known
        atexit.register(self.close)

    create_talk_session = plain(AsyncAgentService.create_talk_session)
    list_sessions = plain(AsyncAgentService.list_sessions)
    get_session = plain(AsyncAgentService.get_session)
    rename = plain(AsyncAgentService.rename)
    configure = plain(AsyncAgentService.configure)
    delete = plain(AsyncAgentService.delete)
    add_message = plain(AsyncAgentService.add_message)
    stop = plain(AsyncAgentService.stop)

    def get_messages(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        after: str | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> Page:
        """The newest messages; or with `after` what is new since; or with `before` older ones."""
        if after is not None:
            # A read that finds nothing new costs next to nothing: no lock, no query.
            live = self._known(talk_session_id)
            if live is not None:
                page = live.nothing_new
                if page is not None and page.cursor == after and live.owner == user_id and before is None:
                    live.touched = True
                    return page
        return drive(self.asynchronous.get_messages(user_id, talk_session_id, after=after, before=before, limit=limit))

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> Iterator[Change]:
        """What there is, then each piece as it is written. Waits; ends when the run does, or never with `follow`."""
        return each(self.asynchronous.stream_messages(user_id, talk_session_id, after=after, follow=follow))

    def profiles(self) -> Sequence[Profile]:
        """What can be talked with, the default first."""
        return self.asynchronous.profiles()

    def health(self) -> Health:
        return self.roost.health()

    def close(self) -> None:
        """Let running answers end, for a bounded time; keep what did not end for the next start."""
        atexit.unregister(self.close)
        drive(self.roost.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(
    url: str | None = None,
    *,
    brains: Mapping[str, Brain] | None = None,
    default: str | None = None,
    limits: Limits | None = None,
    config: str | Path | None = None,
    tools: Sequence[Tool] = (),
) -> AgentService:
    """Open a Roost on a store (`sqlite:///file.db`, `postgresql://…`; the data folder's if none is named) and start it.

    Each function in `brains` is also a profile of that name; `default` names the profile of talks that name none.
    `tools` are what brains may call, as far as their profiles allow it.
    What is not given here is taken from `config` (else ROOST_CONFIG, else ./roost.toml) and ROOST_… variables.
    """
    return AgentService(_opened(url, brains, default, limits, config, tools))


async def aopen(
    url: str | None = None,
    *,
    brains: Mapping[str, Brain] | None = None,
    default: str | None = None,
    limits: Limits | None = None,
    config: str | Path | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncAgentService:
    """The same with coroutines: `async with await roost.aopen(…) as service`."""
    given = url, brains, default, limits, config, tools
    roost = await asyncio.get_running_loop().run_in_executor(None, _opened, *given)
    return AsyncAgentService(roost)


def _opened(
    url: str | None,
    brains: Mapping[str, Brain] | None,
    default: str | None,
    limits: Limits | None,
    config: str | Path | None = None,
    tools: Sequence[Tool] = (),
) -> Roost:
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
    young, *older = gc.get_threshold()
    if young:  # else whoever uses it has turned the collector off
        gc.set_threshold(max(young, COLLECTED_AFTER), *older)
    if not is_configured(config):
        read_secrets()
        shelf = Shelf(brains, (), default, models=models_folder())
        return open_roost(url or default_url(), shelf, limits or Limits(), tools=tools)
    from roost.settings import load  # pydantic takes longer to import than all of Roost

    return from_settings(load(config), url=url, brains=brains, default=default, limits=limits, tools=tools)
