"""Phases of an activation: from the wait for a loop to its retirement, and the legal moves between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import Enum


class LoopPhase(Enum):
    """Phase of an activation. The lifecycle state of its agent (`idle`, `active`, …) is something else."""

    QUEUED = "queued"
    """Waits for a loop."""
    RUNNING = "running"
    """Has a loop, and starts turns."""
    DETACHED = "detached"
    """Has returned its loop; only writes of its closings are left."""
    DRAINING = "draining"
    """Has a loop, and starts no more turns: the agent is stopped, falls asleep or is paused, or Roost closes."""
    RETIRED = "retired"
    """Has left the registry; everything that it still does is discarded."""


PHASE_MOVES: Mapping[LoopPhase, frozenset[LoopPhase]] = {
    LoopPhase.QUEUED: frozenset({LoopPhase.RUNNING, LoopPhase.RETIRED}),
    LoopPhase.RUNNING: frozenset({LoopPhase.DETACHED, LoopPhase.DRAINING, LoopPhase.RETIRED}),
    LoopPhase.DETACHED: frozenset({LoopPhase.QUEUED, LoopPhase.RETIRED}),
    LoopPhase.DRAINING: frozenset({LoopPhase.RETIRED}),
    LoopPhase.RETIRED: frozenset(),
}


class PhaseMachine:
    """Phase of one activation. Any thread may call. Several machines may share the lock."""

    __slots__ = ("_lock", "phase")

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self.phase = LoopPhase.QUEUED
        self._lock = lock

    def move(self, before: LoopPhase, after: LoopPhase, condition: Callable[[], bool] | None = None) -> bool:
        """Move atomically, if the phase is `before` and the condition holds; return True to exactly one caller.

        Raises RuntimeError if the table does not allow the move.
        """
        if after not in PHASE_MOVES[before]:
            raise RuntimeError(f"an activation cannot move from {before.value} to {after.value}")
        with self._lock:
            if self.phase is not before or (condition is not None and not condition()):
                return False
            self.phase = after
            return True

    def retire(self) -> bool:
        """Retire from any phase; return True to exactly one caller."""
        while (before := self.phase) is not LoopPhase.RETIRED:
            if self.move(before, LoopPhase.RETIRED):
                return True
        return False

    @property
    def has_loop(self) -> bool:
        phase = self.phase
        return phase is LoopPhase.RUNNING or phase is LoopPhase.DRAINING

    @property
    def is_ending(self) -> bool:
        """Return True if it starts no more turns."""
        phase = self.phase
        return phase is LoopPhase.DRAINING or phase is LoopPhase.RETIRED

    @property
    def is_detached(self) -> bool:
        return self.phase is LoopPhase.DETACHED

    @property
    def is_retired(self) -> bool:
        return self.phase is LoopPhase.RETIRED
