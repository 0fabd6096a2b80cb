"""AgentService: the API of a Roost for pages and scripts; AsyncAgentService: the same as coroutines, for servers.

This is the one place where threads without an event loop enter the runtime: each method drives the coroutine of the
same name to its end. It needs no event loop, so it also works on a thread whose loop is running (a notebook).
"""

from __future__ import annotations

import asyncio
import atexit
import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from roost.brains.profiles import ProfileRegistry
from roost.connections import added_profiles
from roost.core.limits.limits import Limits
from roost.core.meetings.games.games import Game
from roost.core.meetings.games.registry import register_game
from roost.core.monitoring.health import Health
from roost.core.talks.messages import PAGE, Page
from roost.hosts.pending import drive
from roost.ports import Brain, Profile, Tool
from roost.runtime.roost import Roost
from roost.sync import AsyncNamespaces, SyncNamespaces
from roost.wiring import (
    added_profiles_file,
    default_url,
    from_settings,
    is_configured,
    models_folder,
    open_roost,
    read_secrets,
)

COLLECTED_AFTER = 50_000
"""Allocations between two collections of the youngest generation; Python's default is reached after some ten turns."""


class AsyncAgentService(AsyncNamespaces):
    """All operations as coroutines; those on talks are methods of the service itself.

    Every method takes the user first, and sees only this user's data. Data of other users raises NotFound, like data
    that does not exist. Bad input raises Invalid and changes nothing.
    """

    def __init__(self, roost: Roost) -> None:
        self.roost = roost
        super().__init__(lambda name: getattr(roost, name))

    def profiles(self) -> Sequence[Profile]:
        """Return the profiles that talks can use, the default first."""
        return self.roost.context.brains.names()

    def health(self) -> Health:
        return self.roost.health()

    def count_nodes(self) -> int:
        """Return the number of nodes of the cluster that are alive; 1 without a cluster."""
        return 1 if self.roost.membership is None else self.roost.membership.count

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

    Methods that write wait for the commit. Of those on talks, only `stream_messages` and `stop(wait=…)` wait for the
    agent.
    """

    def __init__(self, roost: Roost) -> None:
        self.roost = roost
        self.asynchronous = AsyncAgentService(roost)
        super().__init__(self.asynchronous)
        self._known = roost.live_talks.known
        atexit.register(self.close)

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
        added = added_profiles.read(added_profiles_file())
        profiles = ProfileRegistry(brains, added, default, models=models_folder())
        return open_roost(url or default_url(), profiles, limits or Limits(), tools=tools)
    from roost.settings import load  # pydantic takes longer to import than all of Roost

    return from_settings(load(config), url=url, brains=brains, default=default, limits=limits, tools=tools)
