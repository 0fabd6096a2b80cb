"""AgentService: the API of a Roost for pages and scripts; AsyncAgentService: the same as coroutines, for servers.

This is the one place where threads without an event loop enter the runtime: each method drives the coroutine of the
same name to its end. It needs no event loop, so it also works on a thread whose loop is running (a notebook).
"""

from __future__ import annotations

import asyncio
import atexit
import gc
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roost.brains.profiles import ProfileRegistry
from roost.core.limits.limits import Limits
from roost.core.meetings.games.games import Game
from roost.core.meetings.games.registry import register_game
from roost.core.monitoring.health import Health
from roost.core.talks.messages import PAGE, Change, Message, Page
from roost.core.talks.talk import Receipt, Talk
from roost.hosts.pending import drive
from roost.ports import Brain, Profile, Tool
from roost.runtime.handlers.talks import Talks
from roost.runtime.roost import Roost
from roost.sync import AsyncNamespaces, SyncNamespaces, iterate, sync_method
from roost.wiring import default_url, from_settings, is_configured, models_folder, open_roost, read_secrets

COLLECTED_AFTER = 50_000
"""Allocations between two collections of the youngest generation; Python's default is reached after some ten turns."""


class AsyncAgentService(AsyncNamespaces):
    """Operations on talks as coroutines. Every method takes the user first, and sees only this user's data.

    Data of other users raises NotFound, like data that does not exist. Bad input raises Invalid and changes nothing.
    """

    def __init__(self, roost: Roost) -> None:
        self.roost = roost
        super().__init__(lambda name: getattr(roost, name))
        self._talks: Talks = roost.talks
        self._known = roost.live_talks.known

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
        """Start a talk with a profile (the default if none is named); return its id.

        `busy` is the policy for a message that arrives while an answer is being written: interrupt, queue, reject,
        rollback, steer or collect.
        """
        options = {"model": model, "temperature": temperature, "instructions": instructions}
        return await self._talks.create(user_id, profile, agent, busy, title, options)

    async def list_sessions(self, user_id: str, *, limit: int = PAGE, before: str | None = None) -> list[Talk]:
        """Return the user's talks, last used first; `before` is the last id of the previous page."""
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
        """Change the title and settings of the talk from the next answer on: all of them, or none if one is invalid.

        `options` (model, temperature, instructions) replace the previous ones.
        """
        return await self._talks.change(user_id, talk_session_id, profile, busy, title, options)

    async def delete(self, user_id: str, talk_session_id: str) -> None:
        """Stop the talk, and delete it with everything that belongs to it."""
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
        """Store the message, apply the `busy` policy to the run in progress, and return; the answer follows.

        Waits for the commit, never for the agent. With a known `key` and the same content it returns the stored
        message and changes nothing; with other content it raises Conflict.
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
        """Return the newest messages; with `after` (a cursor) the changes since; with `before` (a number) older ones.

        A message that is being written is returned again, with all its text so far, when it has grown.
        """
        return await self._talks.get_messages(user_id, talk_session_id, after, before, limit)

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`."""
        return self._talks.stream(user_id, talk_session_id, after, follow)

    async def stop(self, user_id: str, talk_session_id: str, *, wait: float = 0.0) -> Receipt:
        """Stop the run in progress and drop queued messages. Wait up to `wait` seconds until it has stopped."""
        return await self._talks.stop(user_id, talk_session_id, wait)

    def profiles(self) -> Sequence[Profile]:
        """Return the profiles that talks can use, the default first."""
        return self.roost.context.brains.names()

    def health(self) -> Health:
        return self.roost.health()

    async def heartbeat(self, age: float = 1.0) -> None:
        """Return if a commit succeeded within `age` seconds, or succeeds now; otherwise raise Unavailable."""
        await self.roost.context.store.heartbeat(age)

    async def close(self) -> None:
        """Let running answers finish, for a bounded time; keep unfinished work for the next start."""
        await self.roost.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AgentService(SyncNamespaces):
    """The same operations as blocking methods, for any number of threads; see AsyncAgentService.

    Methods that write wait for the commit. Only `stream_messages` and `stop(wait=…)` wait for the agent.
    """

    def __init__(self, roost: Roost) -> None:
        self.roost = roost
        self.asynchronous = self._asynchronous = AsyncAgentService(roost)
        super().__init__(self.asynchronous)
        self._known = roost.live_talks.known
        atexit.register(self.close)

    create_talk_session = sync_method(AsyncAgentService.create_talk_session)
    list_sessions = sync_method(AsyncAgentService.list_sessions)
    get_session = sync_method(AsyncAgentService.get_session)
    rename = sync_method(AsyncAgentService.rename)
    configure = sync_method(AsyncAgentService.configure)
    delete = sync_method(AsyncAgentService.delete)
    add_message = sync_method(AsyncAgentService.add_message)
    stop = sync_method(AsyncAgentService.stop)

    def get_messages(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        after: str | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> Page:
        """Return the newest messages; with `after` the changes since; with `before` older ones."""
        if after is not None:
            # Fast path for a read that finds nothing new: no lock, no query.
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
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`."""
        return iterate(self.asynchronous.stream_messages(user_id, talk_session_id, after=after, follow=follow))

    def profiles(self) -> Sequence[Profile]:
        """Return the profiles that talks can use, the default first."""
        return self.asynchronous.profiles()

    def health(self) -> Health:
        return self.roost.health()

    def close(self) -> None:
        """Let running answers finish, for a bounded time; keep unfinished work for the next start."""
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
    games: Mapping[str, Game] | None = None,
) -> AgentService:
    """Open a store (`sqlite:///file.db`, `postgresql://…`; by default that of the data folder) and start a Roost.

    Each function in `brains` is also a profile of that name; `default` names the profile of talks that name none.
    Brains may call `tools` if their profiles allow it. `games` can be played in meetings; they are registered for the
    whole process, see `roost.register_game`.
    Other settings are read from `config` (or ROOST_CONFIG, or ./roost.toml) and ROOST_… variables.
    """
    return AgentService(_opened(url, brains, default, limits, config, tools, games))


async def aopen(
    url: str | None = None,
    *,
    brains: Mapping[str, Brain] | None = None,
    default: str | None = None,
    limits: Limits | None = None,
    config: str | Path | None = None,
    tools: Sequence[Tool] = (),
    games: Mapping[str, Game] | None = None,
) -> AsyncAgentService:
    """Open the same service with coroutines: `async with await roost.aopen(…) as service`."""
    given = url, brains, default, limits, config, tools, games
    roost = await asyncio.get_running_loop().run_in_executor(None, _opened, *given)
    return AsyncAgentService(roost)


def _opened(
    url: str | None,
    brains: Mapping[str, Brain] | None,
    default: str | None,
    limits: Limits | None,
    config: str | Path | None = None,
    tools: Sequence[Tool] = (),
    games: Mapping[str, Game] | None = None,
) -> Roost:
    for name, game in (games or {}).items():
        register_game(name, game)
    young, *older = gc.get_threshold()
    if young:  # zero: the program has disabled the collector
        gc.set_threshold(max(young, COLLECTED_AFTER), *older)
    if not is_configured(config):
        read_secrets()
        profiles = ProfileRegistry(brains, (), default, models=models_folder())
        return open_roost(url or default_url(), profiles, limits or Limits(), tools=tools)
    from roost.settings import load  # pydantic takes longer to import than all of Roost

    return from_settings(load(config), url=url, brains=brains, default=default, limits=limits, tools=tools)
