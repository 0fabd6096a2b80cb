"""Runs: how an attempt to handle envelopes ended, and what became of it in the store. The same for talks and agents."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from roost.core.brain_data.brain_context import ContextWrite
from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import StateChange
from roost.core.envelopes.requests import Answered
from roost.core.limits.usage import NOTHING, Usage
from roost.core.talks.messages import Status
from roost.core.talks.runs import Stop, TalkUpdate
from roost.core.values.records import record


class Verdict(StrEnum):
    """Verdict on the envelopes of an attempt."""

    DONE = "done"
    RETRY = "retry"
    DEAD = "dead"
    CANCELLED = "cancelled"
    RELEASED = "released"
    """Ended from outside: another attempt follows, and this one is not counted."""
    WAITING = "waiting"
    """Suspended until a person decides; then it continues from its journal."""
    REPEATED = "repeated"
    """Another turn changed the same names of `turn.state`: it runs again from its journal, without counting."""
    INTERRUPTED = "interrupted"
    """A later message of the talk superseded it: handled if any part of the answer was readable."""


FINAL = frozenset({Verdict.DONE, Verdict.DEAD, Verdict.CANCELLED})
"""Verdicts that remove the envelopes."""
KEPT = frozenset({Verdict.RETRY, Verdict.WAITING, Verdict.REPEATED})
"""Verdicts that keep an agent's envelope in its inbox for another attempt."""


class RunOutcome(StrEnum):
    """Outcome in the record of a run."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"
    WAITING = "waiting"
    """Suspended until a person decides. Another run continues from its journal."""
    REPEATED = "repeated"
    """Another turn has changed the same names of `turn.state`. Another run continues from its journal."""


OUTCOMES = {
    Verdict.DONE: RunOutcome.DONE,
    Verdict.RETRY: RunOutcome.FAILED,
    Verdict.DEAD: RunOutcome.FAILED,
    Verdict.CANCELLED: RunOutcome.STOPPED,
    Verdict.RELEASED: RunOutcome.STOPPED,
    Verdict.WAITING: RunOutcome.WAITING,
    Verdict.REPEATED: RunOutcome.REPEATED,
    Verdict.INTERRUPTED: RunOutcome.STOPPED,
}


@record(frozen=True, slots=True)
class AnswerEnd:
    """End of an answer in a talk."""

    notes: str = ""
    """Output of the side channels, as stored."""
    first_chunk: float | None = None
    stop: Stop | None = None
    lost: bool = False
    """Its worker was lost: later writes of the run are ignored."""
    owner: str | None = None
    """User of the talk, stored with the run."""


@record(frozen=True, slots=True)
class Closing:
    """Final record of one attempt; written in one transaction."""

    run_id: str
    envelope: Envelope
    epoch: int
    verdict: Verdict
    text: str
    started: float
    ended: float
    reason: str = ""
    """Reason of a failure, in one sentence."""
    fault: str | None = None
    due: float = 0.0
    """Time of the next attempt."""
    state: str | None = None
    """`turn.state` after the attempt, if it has changed."""
    sent: tuple[Effect, ...] = ()
    sleep: str | None = None
    """Wake condition, if the turn asked for sleep."""
    published: tuple[str, ...] = ()
    """Events that the turn published before it asked for sleep: they do not wake it."""
    brain_context: ContextWrite | None = None
    """Brain context to write."""
    changes: list[StateChange] = field(default_factory=list)
    usage: Usage = NOTHING
    profile: str = ""
    journaled: bool = False
    """True if steps are recorded for it."""
    turn_input: str | None = None
    """Input of the turn, for a replay."""
    state_before: str | None = None
    """`turn.state` before the attempt."""
    traceback: str | None = None
    """The traceback of a failure, for the author of the brain."""
    others: tuple[Envelope, ...] = ()
    """Further messages of a talk that the same run answers."""
    answer: AnswerEnd | None = None
    """Only in a talk."""
    agent_epoch: int | None = None
    """Epoch of the agent that answers in a talk: it proves that the turn may change the agent."""

    @property
    def envelopes(self) -> tuple[Envelope, ...]:
        return (self.envelope, *self.others)

    @property
    def outcome(self) -> RunOutcome:
        return RunOutcome.LOST if self.answer is not None and self.answer.lost else OUTCOMES[self.verdict]

    @property
    def status(self) -> Status:
        """Return the status of the answer in a talk."""
        return _STATUSES.get(self.verdict, Status.INTERRUPTED)


_STATUSES = {Verdict.DONE: Status.COMPLETE, Verdict.DEAD: Status.FAILED}


@record(frozen=True, slots=True)
class Settled:
    """Result of settling: whether the closing was accepted, and the envelopes it posted."""

    taken: bool
    posted: tuple[Envelope, ...] = ()
    over: str | None = None
    """Task that is over."""
    answered: Answered | None = None
    talk: TalkUpdate | None = None
    """The talk after it, if it was a run of a talk."""
