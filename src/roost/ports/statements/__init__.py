"""The operations of the store, by what they are about. Every one is a plain function of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from roost.core.diary import Entry, Place, Scope
from roost.core.events import Event
from roost.ports.statements.agents import AgentStatements, MemoryStatements, WatchStatements
from roost.ports.statements.inbox import InboxStatements, LetterStatements, TaskStatements, TimerStatements
from roost.ports.statements.mail import MailStatements
from roost.ports.statements.meetings import MeetingStatements
from roost.ports.statements.steps import ApprovalStatements, RunBook, StepStatements
from roost.ports.statements.talks import MessageStatements, RunStatements, TalkStatements
from roost.ports.store import Tx


class EventStatements(Protocol):
    def listed(
        self, tx: Tx, user_id: str, pattern: str | None, since: float | None, until: float | None, limit: int,
        before: str, /,
    ) -> list[Event]:  # fmt: skip
        """Newest first, those before `before`. Among them may be some that the pattern does not stand for."""
        ...


class DiaryStatements(Protocol):
    """What brains note for themselves. It is written with the end of a turn, and forgotten with its talk or agent."""

    def read(self, tx: Tx, place: Place, app: str, limit: int, /) -> tuple[list[Entry], dict[Scope, dict[str, str]]]:
        """The newest entries, in the order of their turns, and all values."""
        ...


@dataclass(frozen=True, slots=True)
class OldPage:
    """Keys of what may go, and where to go on from; `()`: that was the last."""

    keys: tuple[tuple[str, ...], ...]
    following: tuple[str, ...]


class RetentionStatements(Protocol):
    """What is over and too old. `old` looks, on a snapshot; `remove` looks again at each before it is gone."""

    def old(self, tx: Tx, kind: str, before: float, after: Sequence[str], limit: int, /) -> OldPage:
        """Look at so many, in the order of their keys, from `after` on; those of them that may go."""
        ...

    def remove(self, tx: Tx, kind: str, before: float, keys: Sequence[Sequence[str]], /) -> int:
        """Those that may still go, with all that belongs to them; how many that were."""
        ...


@dataclass(frozen=True, slots=True)
class Statements:
    """All operations of the store, one set an aggregate."""

    talks: TalkStatements
    messages: MessageStatements
    runs: RunStatements
    agents: AgentStatements
    inbox: InboxStatements
    tasks: TaskStatements
    timers: TimerStatements
    mail: MailStatements
    events: EventStatements
    letters: LetterStatements
    memories: MemoryStatements
    diary: DiaryStatements
    watching: WatchStatements
    retention: RetentionStatements
    steps: StepStatements
    approvals: ApprovalStatements
    runbook: RunBook
    meetings: MeetingStatements
