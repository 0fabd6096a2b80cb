"""The operations of the store for inboxes: what is put there, taken, tried and settled, and what is due later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from roost.core.envelopes import (
    Answered,
    Change,
    DeadLetter,
    Effect,
    Envelope,
    Request,
    Taken,
    WorkClosing,
    WorkSettled,
)
from roost.core.schedules import Fired, Schedule
from roost.core.steps import Recorded
from roost.core.tasks import Task
from roost.ports.store import Look, Tx, World


class InboxStatements(Protocol):
    """What is in inboxes. Whatever writes for an agent proves by its epoch that it still may."""

    def post(self, tx: Tx, effect: Effect, /) -> tuple[Envelope, ...]:
        """Send something; what it has put into inboxes. Raises NotFound if the recipient does not exist (any more)."""
        ...

    def post_now(
        self,
        tx: Tx,
        envelope_id: str,
        address: str,
        epoch: int,
        step: int,
        effects: tuple[Effect, ...],
        numbers: tuple[int, ...],
        now: float,
        given: Mapping[str, Any] | None = ...,
        /,
    ) -> tuple[Envelope, ...] | None:
        """Send what a turn sends before it ends, and put each on record under its number. None: it may not."""
        ...

    def ask(
        self, tx: Tx, requests: tuple[Request, ...], full: frozenset[str] = ..., /
    ) -> tuple[bool | Answered | None, ...]:  # fmt: skip
        """Post requests, and put on record that their answers are waited for; `full` as for `settle`.

        Of each whether it was posted: False if whom it asks does not exist (any more), None if its turn may not ask.
        One who is stopped is not asked: that is the answer.
        """
        ...

    def answer_to(self, tx: Tx, envelope_id: str, number: int, give_up: bool, /) -> str | None:
        """The answer to a request, as JSON; with `give_up` none is waited for from now on."""
        ...

    def take(self, tx: Tx, looks: tuple[Look, ...], world: World, /) -> tuple[Taken, ...]:
        """Look what agents have to do: wake those whom anything that is there wakes, and hand their work over.

        Where it is `anew`, whoever had it before may write no more. What was never tried is counted as tried now;
        what was, is counted when it is tried again. Whose profile the world does not know is left as it is.
        """
        ...

    def claim(self, tx: Tx, envelope: Envelope, epoch: int, /) -> tuple[int, tuple[Recorded, ...]] | None:
        """Count the try that is about to begin; how many that makes, and what earlier ones have on record.

        None: it is gone, or whoever asks may not have it any more.
        """
        ...

    def release(self, tx: Tx, envelope_ids: Sequence[str], /) -> None:
        """These were counted as tried, and that shall not count."""
        ...

    def settle(
        self, tx: Tx, closings: tuple[WorkClosing, ...], full: frozenset[str] = ...,
        notes: tuple[tuple[str, Change], ...] = ..., /,
    ) -> tuple[WorkSettled, ...]:  # fmt: skip
        """End tries: of each the envelope, the record, the agent's memory and all that it sends, or nothing of it.

        What is sent to those who are `full` is not handed over: they fetch it when they have room. `notes` are
        changes of agents' states that come with no try. Of a try that counts for nothing any more, since its agent was
        stopped or taken over or its task cancelled, the run is kept as `stopped`, and what it has cost; of an agent
        that was deleted, nothing.
        """
        ...

    def expired(
        self, tx: Tx, addresses: Sequence[str], now: float, knows: Callable[[str], bool], /
    ) -> tuple[tuple[Envelope, int], ...]:  # fmt: skip
        """What nobody came to in time, each with its agent's epoch.

        Of agents that sleep, are stopped or paused, or whose profile nobody `knows`; and what waits for another try.
        """
        ...


class TaskStatements(Protocol):
    def get(self, tx: Tx, user_id: str, task_id: str, /) -> Task: ...

    def by_key(self, tx: Tx, user_id: str, key: str, address: str, prompt: str, /) -> str | None:
        """The task that was sent with this key. Raises Conflict if it says something else."""
        ...

    def listed(
        self, tx: Tx, user_id: str, address: str | None, status: str | None, limit: int, before: str, /
    ) -> list[Task]:
        """Newest first, those before `before`. For `status` all are queued that are not over."""
        ...

    def cancel(self, tx: Tx, user_id: str, task_id: str, now: float, /) -> Task:
        """As it is then; one that is over stays as it is."""
        ...


class LetterStatements(Protocol):
    """Dead letters. One that is not this user's is `NotFound`, as is one that does not exist."""

    def get(self, tx: Tx, user_id: str, letter_id: str, /) -> DeadLetter: ...

    def listed(
        self, tx: Tx, user_id: str, address: str | None, kind: str | None, limit: int, before: str, /
    ) -> list[DeadLetter]:
        """Newest first, those before `before`."""
        ...

    def names(
        self, tx: Tx, user_id: str, address: str | None, until: float, limit: int, after: str, /
    ) -> list[str]:  # fmt: skip
        """The ids of those there are until then, oldest first, after `after`."""
        ...

    def retry(self, tx: Tx, user_id: str, letter_id: str, now: float, /) -> tuple[Envelope, ...]:
        """Post it again and remove it: untried, and with as much time as it had; what it has put into inboxes.

        What is on record of earlier tries stays, but for steps of which it is not known whether they were done.
        Raises NotFound, Conflict or LimitReached if it cannot be posted; then it stays as it is.
        """
        ...

    def drop(self, tx: Tx, user_id: str, letter_id: str, /) -> None: ...


class TimerStatements(Protocol):
    """What is due by the clock. A schedule that is not this user's is `NotFound`, as is one that does not exist."""

    def next_due(self, tx: Tx, /) -> float | None:
        """When the next timer is due."""
        ...

    def fire(
        self, tx: Tx, now: float, new_id: Callable[[], str], has_begun: Callable[[str, str], bool], /
    ) -> Fired:  # fmt: skip
        """Do what is due: wake whom it wakes, post what schedules post, and advance the timers, all at once.

        `new_id` is of a task. `has_begun` says of an agent's task that was handed over whether it is being done: that
        is not written.
        """
        ...

    def create(
        self, tx: Tx, schedule_id: str, user_id: str, address: str, name: str, prompt: str, priority: str, rule: str,
        overlap: str, missed: str, catch_up: float, now: float, most: int, /,
    ) -> Schedule:  # fmt: skip
        """Raises Conflict if the agent has one of that name, LimitReached beyond `most` that come again."""
        ...

    def get(self, tx: Tx, user_id: str, schedule_id: str, /) -> Schedule: ...

    def listed(self, tx: Tx, user_id: str, address: str | None, limit: int, after: str, /) -> list[Schedule]: ...

    def change(
        self, tx: Tx, user_id: str, schedule_id: str, values: dict[str, str | float | int], now: float, /
    ) -> Schedule:
        """A new rule counts from now, and a time that has passed is due at once.

        What would have come while it was paused is not missed.
        """
        ...

    def delete(self, tx: Tx, user_id: str, schedule_id: str, /) -> None:
        """What it has posted stays."""
        ...
