"""Stream of facts, and the metrics that are counted with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.limits.limits import Limits
from roost.core.limits.usage import NOTHING as UNUSED
from roost.core.limits.usage import Usage
from roost.core.monitoring.facts import Fact, FactPage, FactRow, Name, decode, owner_of
from roost.core.monitoring.metrics import Metric
from roost.core.runs import Closing, RunOutcome, Settled, Verdict
from roost.core.schedules.schedule import Fired
from roost.core.talks.messages import MOST
from roost.core.values import checks
from roost.ports import Host, Pending
from roost.runtime.monitoring.fact_ring import FactLog, FactRing
from roost.runtime.monitoring.fact_rows import add_end, add_sends, fault_of, of_dead_letter
from roost.runtime.monitoring.figure_counts import FigureCounts
from roost.runtime.monitoring.metrics import Metrics
from roost.stores.sql.figures import FigureRow

POLL_INTERVAL = 5.0
NOTHING: Mapping[str, Any] = {}


class FactStream:
    """Recorder and reader of facts. Any thread may call.

    Facts of a commit are built in its transaction, for `Store.write`, and reported after it. Others are recorded.
    `log` returns where facts are kept; by default it is the RAM of this process.
    """

    def __init__(self, host: Host, limits: Limits, log: Callable[[FactStream], FactLog] | None = None) -> None:
        self._host = host
        self._clock = host.clock
        self.metrics_kept = Metrics()
        self._figures = FigureCounts(host.clock)
        self._lock = host.lock()
        self._waiters: list[tuple[str, Pending[None]]] = []
        self._expecting_mail: list[tuple[str, Pending[None]]] = []
        self._closed = False
        self._uncommitted: Callable[[Sequence[FactRow]], object] = bool
        self.log: FactLog = FactRing(host, limits.facts_kept, self.arrived) if log is None else log(self)

    # --- recording -------------------------------------------------------------------------------

    def record(
        self,
        name: Name,
        about: str | None,
        data: Mapping[str, Any] = NOTHING,
        *,
        root: str = "",
        user_id: str | None = None,
    ) -> None:
        """Record a fact that belongs to no commit; without `user_id` it belongs to the owner of the agent."""
        self._record((self.fact(name, about, data, root=root, user_id=user_id),))

    def listen(self, uncommitted: Callable[[Sequence[FactRow]], object]) -> None:
        """Have `uncommitted` called with facts that belong to no commit."""
        self._uncommitted = uncommitted

    def fact(
        self,
        name: Name,
        about: str | None,
        data: Mapping[str, Any] = NOTHING,
        *,
        root: str = "",
        user_id: str | None = None,
    ) -> FactRow:
        """Return a fact of now, for the commit that it reports."""
        return name, self._clock.now(), user_id, about, data, root

    def _record(self, rows: Sequence[FactRow]) -> None:
        self.log.record(rows)
        self._uncommitted(rows)

    def reported(self, rows: Sequence[FactRow]) -> None:
        """Add facts of a commit to the stream."""
        self.log.add(rows)
        self._mailed(rows)
        if rows:
            with self._lock:
                self._figures.advance()
                self._figures.reported(rows)

    def arrived(self, rows: Sequence[FactRow]) -> None:
        """Wake readers when facts can be read; in a cluster also those of other nodes."""
        if self._waiters and rows:
            owners = {owner_of(row) for row in rows}
            _set(self._waiters, None if "" in owners else owners)
        self._mailed(rows)

    def _mailed(self, rows: Sequence[FactRow]) -> None:
        if self._expecting_mail and (mailed := _mailed(rows)):
            _set(self._expecting_mail, mailed)

    @property
    def has_readers(self) -> bool:
        return bool(self._waiters or self._expecting_mail)

    def began(self, envelope: Envelope, run_id: str) -> None:
        """Record the start of a run. Plain messages have no facts unless they fail."""
        if envelope.recorded or envelope.kind is not Kind.TASK:
            now, e = self._clock.now(), envelope
            data = {"run_id": run_id, "kind": e.kind, "envelope_id": e.envelope_id, "attempt": e.attempts}
            rows: list[FactRow] = [(Name.RUN_STARTED, now, None, e.address, data, e.origin)]
            if e.recorded and e.attempts == 1:
                rows.append((Name.TASK_STARTED, now, None, e.address, {"task_id": e.envelope_id}, e.origin))
            self._record(rows)

    def settled(self, closings: tuple[Closing, ...], all_settled: tuple[Settled, ...]) -> list[FactRow]:
        """Return the facts of settled attempts."""
        rows: list[FactRow] = []
        for c, settled in zip(closings, all_settled, strict=True):
            if not settled.taken:
                continue
            verdict, e = c.verdict, c.envelope
            if verdict is not Verdict.DONE or e.recorded or e.kind is not Kind.TASK:
                add_end(rows, c)
            if c.sent or c.sleep is not None:
                asleep = c.sleep is not None
                add_sends(rows, c.sent, settled.posted, e.address, e.origin, c.ended, asleep=asleep)
        return rows

    def count_settled(self, closings: tuple[Closing, ...], all_settled: tuple[Settled, ...]) -> None:
        metrics, figures = self.metrics_kept, self._figures
        with self._lock:
            figures.advance()
            for c, settled in zip(closings, all_settled, strict=True):
                if not settled.taken:
                    continue
                metrics.settled[(c.verdict,)] += 1
                if c.run_id:
                    metrics.ran(c.envelope.kind, c.outcome, c.ended - c.started)
                    metrics.spent(c.profile, c.usage)
                fault = fault_of(c)
                figures.settled(c, fault)
                if fault is not None:
                    metrics.faults[(fault,)] += 1

    def cut_off(
        self,
        envelope: Envelope,
        run_id: str,
        outcome: RunOutcome,
        started: float,
        profile: str = "",
        usage: Usage = UNUSED,
    ) -> None:
        """Record the end of a run that was cancelled, or whose thread was lost."""
        now = self._clock.now()
        with self._lock:
            self.metrics_kept.ran(envelope.kind, outcome, now - started)
            self.metrics_kept.spent(profile, usage)
            self._figures.cut_off(envelope, outcome, profile, usage)
        data = {"run_id": run_id, "kind": envelope.kind, "envelope_id": envelope.envelope_id, "outcome": outcome}
        data |= usage.facts()
        self._record(((Name.RUN_ENDED, now, None, envelope.address, data, envelope.origin),))

    def talk_began(self, user_id: str, talk_id: str, run_id: str, root: str) -> None:
        self.record(Name.RUN_STARTED, talk_id, {"run_id": run_id, "kind": Kind.TALK}, root=root, user_id=user_id)

    def talk_settled(self, user_id: str, c: Closing, all_settled: tuple[Settled, ...]) -> list[FactRow]:
        """Return the facts of a settled run of a talk."""
        [settled] = all_settled
        now, root, outcome = self._clock.now(), c.envelope.origin, _outcome(c, settled)
        data = {"run_id": c.run_id, "kind": Kind.TALK, "outcome": outcome, "seconds": now - c.started}
        data |= c.usage.facts()
        if c.fault and outcome is not RunOutcome.STOPPED:
            data["fault"] = c.fault
        rows: list[FactRow] = [(Name.RUN_ENDED, now, user_id, c.envelope.lane, data, root)]
        if settled.taken and (c.sent or c.sleep is not None):
            address, asleep = c.envelope.address or f"{user_id}/", c.sleep is not None
            add_sends(rows, c.sent, settled.posted, address, root, now, asleep=asleep)
        return rows

    def count_talk(self, user_id: str, c: Closing, settled: Settled) -> None:
        outcome = _outcome(c, settled)
        with self._lock:
            self._figures.talk_ended(user_id, c, outcome)
            self.metrics_kept.ran(Kind.TALK, outcome, self._clock.now() - c.started)
            self.metrics_kept.spent(c.profile, c.usage)
            if c.fault and outcome is not RunOutcome.STOPPED:
                self.metrics_kept.faults[(c.fault,)] += 1

    def sent(
        self, address: str, effects: tuple[Effect, ...], posted: tuple[Envelope, ...], root: str = ""
    ) -> list[FactRow]:
        """Return the facts of the sends of a running turn, or of a user (`ann/`), with the posted envelopes."""
        rows: list[FactRow] = []
        add_sends(rows, effects, posted, address, root, self._clock.now())
        return rows

    def letters(self, letters: Sequence[DeadLetter]) -> list[FactRow]:
        """Return the facts of new dead letters of any kind."""
        now = self._clock.now()
        return [row for letter in letters for row in of_dead_letter(letter, now)]

    def died(self, letters: Sequence[DeadLetter]) -> None:
        """Report new dead letters after their commit."""
        with self._lock:
            self.metrics_kept.dead += len(letters)
            self._figures.died(letters)
        self.reported(self.letters(letters))

    def posted(self, envelopes: Sequence[Envelope]) -> None:
        with self._lock:
            self._figures.advance()
            self._figures.posted(envelopes)
            for envelope in envelopes:
                self.metrics_kept.posted[(envelope.kind,)] += 1

    def ticked(self, fired: Fired) -> list[FactRow]:
        """Return the facts of fired timers."""
        now = self._clock.now()
        rows: list[FactRow] = []
        for e in fired.posted:
            if e.sender.startswith("schedule:"):
                data = {"schedule_id": e.sender.removeprefix("schedule:"), "task_id": e.envelope_id}
                rows.append((Name.SCHEDULE_TICKED, now, None, e.address, data, e.origin))
                rows.append((Name.TASK_SENT, now, None, e.address, {"task_id": e.envelope_id}, e.origin))
        for address, task_id in fired.cancelled:
            rows.append((Name.TASK_CANCELLED, now, None, address, {"task_id": task_id}, task_id))
        return rows

    def count_late(self, seconds: float, addresses: Iterable[str]) -> None:
        """Count timers of these agents that fired late together."""
        with self._lock:
            self.metrics_kept.late.add(seconds)
            self._figures.late(addresses, seconds)

    def restarted(self, worker: str) -> None:
        with self._lock:
            self.metrics_kept.restarts += 1
        self.record(Name.WORKER_RESTARTED, None, {"worker": worker}, user_id="")

    def breaker(self, provider: str, *, is_open: bool) -> None:
        """Record that the circuit breaker of a provider opened or closed."""
        name = Name.PROVIDER_PAUSED if is_open else Name.PROVIDER_RESUMED
        self.record(name, None, {"provider": provider}, user_id="")

    # --- figures ---------------------------------------------------------------------------------

    def take_figures(self, *, all_of_it: bool = False) -> list[FigureRow]:
        """Return the counts of finished buckets, which the caller writes."""
        with self._lock:
            return self._figures.take(all_of_it=all_of_it)

    def give_back_figures(self, rows: Iterable[FigureRow]) -> None:
        with self._lock:
            self._figures.give_back(rows)

    def forget_figures(self, user_id: str) -> None:
        """Drop the counts of a user who is being deleted."""
        with self._lock:
            self._figures.forget(user_id)

    # --- reading ---------------------------------------------------------------------------------

    async def facts(self, user_id: str, after: str | None, limit: int) -> FactPage:
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        if after is not None:
            decode(after)
        await self.log.catch_up()
        return self.log.newest(user_id, limit) if after is None else self.log.since(user_id, after, limit)

    async def wait(self, user_id: str, after: str, timeout: float | None = None) -> FactPage:  # noqa: ASYNC109
        checks.name(user_id, "the user id")
        decode(after)
        latest = None if timeout is None else self._clock.monotonic() + checks.seconds(timeout, "the timeout")
        await self.log.catch_up()
        return await self._wait(user_id, after, latest)

    async def _wait(self, user_id: str, after: str, latest: float | None = None) -> FactPage:
        while True:
            waiter: Pending[None] = self._host.pending()
            self._waiters.append((user_id, waiter))  # listen first, then check, then wait
            try:
                page = self.log.since(user_id, after, MOST)
                left = POLL_INTERVAL if latest is None else min(POLL_INTERVAL, latest - self._clock.monotonic())
                if page.is_over or self._closed or left <= 0:
                    return page
                await waiter.within(left)
            finally:
                self._waiters.remove((user_id, waiter))

    @contextmanager
    def expecting_mail(self, user_id: str) -> Iterator[Pending[None]]:
        """Yield a result that is set when mail to the user has been committed, and when Roost closes."""
        waiter: Pending[None] = self._host.pending()
        self._expecting_mail.append((user_id, waiter))
        try:
            yield waiter
        finally:
            self._expecting_mail.remove((user_id, waiter))

    def follow(self, user_id: str, after: str | None) -> AsyncIterator[Fact]:
        checks.name(user_id, "the user id")
        if after is not None:
            decode(after)
        return self._follow(user_id, self.log.end() if after is None else after)

    def counted(self) -> list[Metric]:
        """Return the counters and histograms."""
        with self._lock:
            return self.metrics_kept.counted()

    async def close(self) -> None:
        """End the stream for all subscribers."""
        self._closed = True
        _set(self._waiters + self._expecting_mail, None)
        await self.log.close()

    # --- inside ----------------------------------------------------------------------------------

    async def _follow(self, user_id: str, cursor: str) -> AsyncIterator[Fact]:
        await self.log.catch_up()
        while (page := await self._wait(user_id, cursor)).is_over:
            cursor = page.cursor
            for fact in page.in_order(user_id):
                yield fact


def _set(waiters: list[tuple[str, Pending[None]]], users: set[str] | None) -> None:
    """Wake the waiters of these users; None: of all."""
    for user_id, waiter in list(waiters):
        if users is None or user_id in users:
            waiter.set(None)


def _outcome(c: Closing, settled: Settled) -> RunOutcome:
    return c.outcome if settled.taken else RunOutcome.STOPPED


def _mailed(rows: Iterable[FactRow]) -> set[str]:
    """Return the recipients of mail among users; a question about an approval counts as mail."""
    to = [row[4]["to"] for row in rows if row[0] is Name.MAIL_SENT]
    asked = {owner_of(row) for row in rows if row[0] is Name.APPROVAL_ASKED}
    return asked | {address.removeprefix("user:") for address in to if address.startswith("user:")}
