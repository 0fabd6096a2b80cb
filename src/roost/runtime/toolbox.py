"""Toolbox: all tools by name, and which of them a profile may use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from roost.core.values import patterns
from roost.errors import Invalid, ToolFailed, Unavailable
from roost.ports import Clock, Profile, Tool, ToolServer

log = logging.getLogger("roost.tools")

AGAIN = 30.0
"""Seconds after which an unreachable server is tried again."""
OWN = frozenset(
    {"mail", "meeting", "send", "ask", "publish", "sleep", "wake", "schedule", "remember", "recall", "forget"}
)
"""Prefixes of the names of built-in tools."""
READ_ONLY = frozenset({"mail.check", "meeting.view", "meeting.list", "recall"})
"""Built-in tools that change nothing."""


class Toolbox:
    """All tools by name. Built-in tools are created on the first use."""

    def __init__(
        self,
        given: Iterable[Tool] = (),
        own: Callable[[], Iterable[Tool]] = tuple,
        servers: Iterable[ToolServer] = (),
        clock: Clock | None = None,
    ) -> None:
        self._given: dict[str, Tool] = {}
        self._clock = clock
        self._servers = {server.name: server for server in servers}
        self._served: dict[str, Sequence[Tool]] = {}
        self._lost: dict[str, float] = {}
        """Times at which unreachable servers are tried again."""
        self._why: dict[str, str] = {}
        """Reasons why servers cannot be reached."""
        self._make_own = own
        for tool in given:
            if not isinstance(tool, Tool):
                raise Invalid(f"{tool!r:.80} is not a tool: put @roost.tool above the function")
            if tool.name.partition(".")[0] in OWN:
                raise Invalid(f"the name {tool.name!r} is reserved for built-in tools: give it another name")
            if tool.name in self._given:
                raise Invalid(f"there are two tools called {tool.name!r}: give one of them another name")
            tool.parameters  # noqa: B018 — reports an invalid schema now
            self._given[tool.name] = tool

    @cached_property
    def _own(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._make_own()}

    def allowed(self, profile: Profile, is_agent: bool) -> tuple[Tool, ...]:
        """Return the tools that a profile names, or all. Built-in tools are for agents."""
        every = {**self._given, **(self._own if is_agent else {})}
        if profile.tools is None:
            return tuple(every.values())
        for served in self._served.values():
            every |= {tool.name: tool for tool in served}
        return tuple(
            one for one in every.values() if any(patterns.matches(pattern, one.name) for pattern in profile.tools)
        )

    async def prepare(self, profile: Profile) -> None:
        """Connect the servers whose tools the profile names; unreachable ones are skipped for a while."""
        for name, server in self._servers.items():
            if name in self._served or not any(_begins(pattern, name) for pattern in profile.tools or ()):
                continue
            now = 0.0 if self._clock is None else self._clock.monotonic()
            if now < self._lost.get(name, 0.0):
                continue
            try:
                self._served[name] = await server.tools()
            except Unavailable as error:
                self._lost[name] = now + AGAIN
                self._why[name] = str(error)
                log.warning("%s; its tools are unavailable", error, extra={"server": name})

    def missing(self, name: str) -> ToolFailed | None:
        """Return the error if the name is a tool of an unreachable server."""
        server = name.replace("__", ".").partition(".")[0]
        is_known = server in self._why and server not in self._served
        return ToolFailed(f"{self._why[server]}; its tools are unavailable") if is_known else None

    @property
    def has_servers(self) -> bool:
        return bool(self._servers)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


def _begins(pattern: str, name: str) -> bool:
    """Return True if the pattern may match tools of the server."""
    return patterns.matches(pattern.partition(".")[0], name)
