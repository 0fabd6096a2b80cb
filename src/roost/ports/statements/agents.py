"""The operations of the store for agents: how they are, what they remember, and how they look from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from roost.core import wake
from roost.core.agents import Agent, AgentChange, AgentConfig, State
from roost.core.envelopes import Change, Publish, Told
from roost.core.health import RunRecord
from roost.core.memories import Memory
from roost.ports.store import Tx


class AgentStatements(Protocol):
    """Agents themselves. One that is not this user's is `NotFound`, as is one that does not exist."""

    def create(
        self, tx: Tx, user_id: str, agent_ids: Sequence[str], config: AgentConfig, change: Change, most: int, /
    ) -> None:
        """All of them or none. Raises Conflict if one exists, LimitReached beyond `most`."""
        ...

    def get(self, tx: Tx, user_id: str, agent_id: str, /) -> Agent: ...

    def listed(self, tx: Tx, user_id: str, limit: int, after: str, state: str | None, /) -> list[Agent]:
        """By id, those after `after`."""
        ...

    def reach(self, tx: Tx, user_id: str, key: str, known: bool, /) -> tuple[AgentConfig, int]:
        """Of an agent to whom this user may send (one's own, or a shared one): its config, and how much waits."""
        ...

    def audience(
        self, tx: Tx, user_id: str, group: str | None, limit: int, after: str, exact: bool, /
    ) -> list[tuple[str, State, AgentConfig]]:  # fmt: skip
        """By id, those after `after`, as they rest; with a group all that are in it are among them.

        `exact`: with whether they wait for a person, which costs a look at each.
        """
        ...

    def depths(self, tx: Tx, keys: Sequence[str], most: int, /) -> dict[str, int]:
        """How much waits for each of them, counted up to `most`."""
        ...

    def configure(self, tx: Tx, user_id: str, agent_id: str, config: AgentConfig, now: float, /) -> Agent: ...

    def start(self, tx: Tx, user_id: str, agent_id: str, change: Change, /) -> Told | None:
        """It comes back to the meetings that it has left by being stopped. None: it was not stopped."""
        ...

    def stop(self, tx: Tx, user_id: str, agent_id: str, change: Change, news: Publish, /) -> Told | None:
        """Whatever runs may write no more; what is in the inbox stays. None: it was stopped already.

        Those who wait for an answer of its are told that there will be none, those it meets that it has left, and all
        others by the news.
        """
        ...

    def restart(self, tx: Tx, user_id: str, agent_id: str, stopped: Change, started: Change, /) -> tuple[bool, Told]:
        """Whatever runs may write no more, and it begins anew: what waits for it goes on waiting.

        Whether it was not stopped already; and what others were told of its start if it was.
        """
        ...

    def pause(self, tx: Tx, user_id: str, agent_id: str, paused: bool, change: Change, /) -> bool:
        """Have it begin nothing new, or go on. False: it was so already.

        Recorded with the cause of the change, from the state it is in to the same.
        """
        ...

    def sleep(self, tx: Tx, user_id: str, agent_id: str, condition: str, change: Change, /) -> None: ...

    def rewake(
        self, tx: Tx, user_id: str, agent_id: str, change: Callable[[wake.Condition], wake.Condition], /
    ) -> wake.Condition:
        """Change what a sleeper waits for. Raises Conflict if it does not sleep."""
        ...

    def rouse(self, tx: Tx, user_id: str, agent_id: str, change: Change, /) -> bool:
        """Wake it, whatever it waits for. False: it did not sleep."""
        ...

    def delete(self, tx: Tx, user_id: str, agent_id: str, news: Publish | None = ..., /) -> Told:
        """With everything that belongs to it, its talks too; others are told as by `stop`."""
        ...

    def history(self, tx: Tx, user_id: str, agent_id: str, limit: int, before: str, /) -> list[AgentChange]:
        """The changes of its state, newest first; those before `before`."""
        ...

    def unfinished(self, tx: Tx, after: str, limit: int, /) -> list[str]:
        """Agents with something in their inbox, by key."""
        ...

    def wanting_load(self, tx: Tx, limit: int, /) -> list[str]:
        """Sleepers that wait for a lower load."""
        ...


class MemoryStatements(Protocol):
    """What agents remember. An agent that is not this user's is `NotFound`, as is one that does not exist.

    The order of what is found is the same on every store: how much of what is wanted is in it (the characters of those
    words that are), and of equal ones the newest first.
    """

    def remember(
        self, tx: Tx, user_id: str, agent_id: str, key: str, text: str, now: float, most: int, /
    ) -> Memory:  # fmt: skip
        """In place of what is under the key, as the newest. Raises LimitReached beyond `most`."""
        ...

    def forget(self, tx: Tx, user_id: str, agent_id: str, key: str, /) -> bool:
        """False: there is none."""
        ...

    def listed(
        self, tx: Tx, user_id: str, agent_id: str, wanted: Sequence[str] | None, limit: int, before: str | None, /
    ) -> list[Memory]:
        """Those with any of the words; with None all, the newest first. With `before` what comes after that one."""
        ...

    def recalled(self, tx: Tx, address: str, wanted: Sequence[str] | None, limit: int, /) -> list[Memory]:
        """The same, for the agent itself."""
        ...

    def known(self, tx: Tx, address: str, key: str, /) -> tuple[bool, int]:
        """Whether there is one under the key, and how many there are."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """An agent as the store has it."""

    agent: Agent
    memory: str | None
    memories: int
    lanes: Mapping[str, int]
    timers: tuple[tuple[str, datetime], ...]
    changes: tuple[AgentChange, ...]
    runs: tuple[RunRecord, ...]


class WatchStatements(Protocol):
    """Agents as they are looked at. One that is not this user's is `NotFound`, as is one that does not exist."""

    def seen(self, tx: Tx, user_id: str, agent_id: str, limit: int, /) -> Seen:
        """Everything about it; so many of its changes and runs, the newest first."""
        ...

    def find(self, tx: Tx, user_id: str, text: str, limit: int, after: str, /) -> list[Agent]:
        """By id, those after `after` that have the text in their id or somewhere in their settings."""
        ...

    def set_memory(self, tx: Tx, user_id: str, agent_id: str, memory: str, /) -> None: ...
