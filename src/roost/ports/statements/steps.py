"""The operations of the store for journals: steps, what persons are asked about them, and runs to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from roost.core.approvals import Approval, Asked, Decided, Decision
from roost.core.runbook import Run
from roost.core.steps import Recorded, Step, Try
from roost.core.usage import NOTHING, Usage
from roost.ports.store import Tx


class StepStatements(Protocol):
    """What a run did on its way. Whoever begins a step proves by the epoch that it still may."""

    def open(self, tx: Tx, place: Try, now: float, /) -> bool:
        """Put on record what the turn is given. False: it may not."""
        ...

    def begin(
        self, tx: Tx, place: Try, number: int, kind: str, name: str, key: str, request: str | None, outcome: str,
        now: float, asked: Asked | None = ..., /,
    ) -> bool:  # fmt: skip
        """Put on record that it is about to be done, or that a person is asked about it. False: it may not."""
        ...

    def take_up(self, tx: Tx, place: Try, number: int, outcome: str, now: float, asked: Asked | None = ..., /) -> bool:
        """The same for one that an earlier try has left open."""
        ...

    def end(
        self, tx: Tx, place: Try, number: int, outcome: str, result: str | None, now: float,
        begun: tuple[Any, ...] | None = ..., /,
    ) -> None:  # fmt: skip
        """What came of it, unless another run has taken it up meanwhile. Done twice, it is done once.

        `begun`: what `begin` was given for it, if that may not have been written.
        """
        ...

    def note(
        self, tx: Tx, place: Try, number: int, kind: str, name: str, request: str | None, result: str | None,
        outcome: str, now: float, /,
    ) -> None:  # fmt: skip
        """Put on record what is never reused."""
        ...

    def recorded(self, tx: Tx, envelope_ids: Sequence[str], /) -> tuple[Recorded, ...]:
        """What earlier tries of these have on record, in order."""
        ...

    def freshen(self, tx: Tx, envelope_id: str, /) -> None:
        """A try has failed: what failed in it is not used again, and of one that has done nothing nothing is."""
        ...


class ApprovalStatements(Protocol):
    """What persons are asked. One that is not this user's is `NotFound`, as is one that does not exist."""

    def get(self, tx: Tx, user_id: str, approval_id: str, /) -> Approval: ...

    def listed(self, tx: Tx, user_id: str, all: bool, limit: int, before: str, /) -> list[Approval]:
        """Newest first, those before `before`: those that are waited for, or all."""
        ...

    def decide(
        self, tx: Tx, user_id: str, approval_id: str, decision: Decision, note: str | None, now: float, /
    ) -> Decided:
        """Raises Conflict if it was decided before, or nobody waits for it any more."""
        ...

    def of_step(self, tx: Tx, envelope_id: str, step: int, /) -> Approval | None:
        """The newest one of a step, whoever decides it."""
        ...


@dataclass(frozen=True, slots=True)
class Logged:
    """A run with all that is on record of it."""

    run: Run
    given: str | None
    envelope_id: str
    text: str
    """What it said, as far as it is kept."""
    is_whole: bool
    """Whether that is all it said."""
    steps: tuple[Step, ...]
    recorded: tuple[Recorded, ...]
    usage: Usage = NOTHING


class RunBook(Protocol):
    """Runs as they are looked at. One that is not this user's is `NotFound`, as is one that does not exist."""

    def listed(
        self, tx: Tx, user_id: str, talk_id: str | None, agent_id: str | None, limit: int, before: str, /
    ) -> list[Run]:
        """Newest first, those before `before`; of a talk, of an agent, or all of the user's."""
        ...

    def entry(self, tx: Tx, user_id: str, run_id: str, /) -> Logged: ...

    def source(self, tx: Tx, run: Run, envelope_id: str, /) -> str | None:
        """What the run of an agent was about, as JSON; None if it is not kept any more."""
        ...
