"""Stream of facts, and the metrics that are counted with them.

The newest facts of all users are kept in a ring in RAM. Recording a fact costs an append; it becomes a `Fact` when it
is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.limits.limits import Limits
from roost.core.limits.usage import NOTHING as UNUSED
from roost.core.limits.usage import Usage
from roost.core.monitoring.facts import Fact, FactPage, Name, decode, encode
from roost.core.monitoring.metrics import Metric
from roost.core.runs import Closing, RunOutcome, Settled, Verdict
from roost.core.talks.messages import MOST, at
from roost.core.values import checks
from roost.ports import Host, Pending
from roost.runtime.monitoring.fact_rows import FactRow, add_end, add_sends, of_dead_letter
from roost.runtime.monitoring.metrics import Metrics

POLL_INTERVAL = 5.0
NOTHING: Mapping[str, Any] = {}
MAX_UNNUMBERED = 256
"""Maximum number of facts without a number, unless a reader asks for them."""


class FactStream:
    """Recorder and reader of facts. Any thread may call; facts are recorded after their commit."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self._host = host
        self._clock = host.clock
        self.metrics_kept = Metrics()
        self._lock = host.lock()
        self._start = host.new_id("monitor").rpartition("_")[2]
        self._ring: deque[FactRow] = deque(maxlen=limits.facts_kept)
        self._count = 0
        self._incoming: deque[FactRow] = deque()
        """Facts that are not in the ring yet: recording takes no lock."""
        self._waiters: list[tuple[str, Pending[None]]] = []
        self._expecting_mail: list[tuple[str, Pending[None]]] = []
        self._closed = False

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
        """Record a fact; without `user_id` it belongs to the owner of the agent."""
        self._add(((name, self._clock.now(), user_id, about, data, root),))

    def _add(self, rows: Sequence[FactRow]) -> None:
        self._incoming.extend(rows)
        if len(self._incoming) > MAX_UNNUMBERED:
            with self._lock:
                self._number_new()
        if self._waiters and rows:
            self._wake({_owner(row) for row in rows})
        if self._expecting_mail and (mailed := _mailed(rows)):
            _set(self._expecting_mail, mailed)

    def _number_new(self) -> int:
        """Move new facts into the ring, with the lock held; return the number of all facts."""
        incoming = self._incoming
        for _ in range(len(incoming)):
            self._ring.append(incoming.popleft())
            self._count += 1
        return self._count

    def began(self, envelope: Envelope, run_id: str) -> None:
        """Record the start of a run. Plain messages have no facts unless they fail."""
        if envelope.recorded or envelope.kind is not Kind.TASK:
            now, e = self._clock.now(), envelope
            data = {"run_id": run_id, "kind": e.kind, "envelope_id": e.envelope_id, "attempt": e.attempts}
            rows: list[FactRow] = [(Name.RUN_STARTED, now, None, e.address, data, e.origin)]
            if e.recorded and e.attempts == 1:
                rows.append((Name.TASK_STARTED, now, None, e.address, {"task_id": e.envelope_id}, e.origin))
            self._add(rows)

    def settled(self, closings: tuple[Closing, ...], all_settled: tuple[Settled, ...]) -> None:
        rows: list[FactRow] = []
        metrics = self.metrics_kept
        with self._lock:
            for c, settled in zip(closings, all_settled, strict=True):
                if not settled.taken:
                    continue
                verdict, e = c.verdict, c.envelope
                metrics.settled[(verdict,)] += 1
                if c.run_id:
                    metrics.ran(e.kind, c.outcome, c.ended - c.started)
                    metrics.spent(c.profile, c.usage)
                if verdict is not Verdict.DONE or e.recorded or e.kind is not Kind.TASK:
                    add_end(rows, c, metrics)
                if c.sent or c.sleep is not None:
                    asleep = c.sleep is not None
                    add_sends(rows, c.sent, settled.posted, e.address, e.origin, c.ended, asleep=asleep)
        if rows:
            self._add(rows)

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
        data = {"run_id": run_id, "kind": envelope.kind, "envelope_id": envelope.envelope_id, "outcome": outcome}
        data |= usage.facts()
        self._add(((Name.RUN_ENDED, now, None, envelope.address, data, envelope.origin),))

    def talk_began(self, user_id: str, talk_id: str, run_id: str, root: str) -> None:
        self.record(Name.RUN_STARTED, talk_id, {"run_id": run_id, "kind": Kind.TALK}, root=root, user_id=user_id)

    def talk_settled(self, user_id: str, c: Closing, settled: Settled) -> None:
        now, root = self._clock.now(), c.envelope.origin
        outcome = c.outcome if settled.taken else RunOutcome.STOPPED
        data = {"run_id": c.run_id, "kind": Kind.TALK, "outcome": outcome, "seconds": now - c.started}
        data |= c.usage.facts()
        rows: list[FactRow] = []
        with self._lock:
            self.metrics_kept.ran(Kind.TALK, outcome, now - c.started)
            self.metrics_kept.spent(c.profile, c.usage)
            if c.fault and outcome is not RunOutcome.STOPPED:
                self.metrics_kept.faults[(c.fault,)] += 1
                data["fault"] = c.fault
            rows.append((Name.RUN_ENDED, now, user_id, c.envelope.lane, data, root))
            if settled.taken and (c.sent or c.sleep is not None):
                address, asleep = c.envelope.address or f"{user_id}/", c.sleep is not None
                add_sends(rows, c.sent, settled.posted, address, root, now, asleep=asleep)
        self._add(rows)

    def sent(self, address: str, effects: tuple[Effect, ...], posted: tuple[Envelope, ...], root: str = "") -> None:
        """Record the sends of a running turn, or of a user (`ann/`), with the posted envelopes."""
        rows: list[FactRow] = []
        add_sends(rows, effects, posted, address, root, self._clock.now())
        self._add(rows)

    def died(self, letters: Sequence[DeadLetter]) -> None:
        """Record new dead letters of any kind."""
        now = self._clock.now()
        with self._lock:
            self.metrics_kept.dead += len(letters)
        self._add([row for letter in letters for row in of_dead_letter(letter, now)])

    def posted(self, envelopes: Iterable[Envelope]) -> None:
        with self._lock:
            for envelope in envelopes:
                self.metrics_kept.posted[(envelope.kind,)] += 1

    def ticked(self, posted: Iterable[Envelope], late: float | None) -> None:
        now = self._clock.now()
        rows: list[FactRow] = []
        for e in posted:
            if e.sender.startswith("schedule:"):
                data = {"schedule_id": e.sender.removeprefix("schedule:"), "task_id": e.envelope_id}
                rows.append((Name.SCHEDULE_TICKED, now, None, e.address, data, e.origin))
                rows.append((Name.TASK_SENT, now, None, e.address, {"task_id": e.envelope_id}, e.origin))
        if late is not None:
            with self._lock:
                self.metrics_kept.late.add(late)
        self._add(rows)

    def restarted(self, worker: str) -> None:
        with self._lock:
            self.metrics_kept.restarts += 1
        self.record(Name.WORKER_RESTARTED, None, {"worker": worker}, user_id="")

    def breaker(self, provider: str, *, is_open: bool) -> None:
        """Record that the circuit breaker of a provider opened or closed."""
        name = Name.PROVIDER_PAUSED if is_open else Name.PROVIDER_RESUMED
        self.record(name, None, {"provider": provider}, user_id="")

    # --- reading ---------------------------------------------------------------------------------

    def facts(self, user_id: str, after: str | None, limit: int) -> FactPage:
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return self._newest(user_id, limit) if after is None else self._since(user_id, after, limit)

    async def wait(self, user_id: str, after: str, timeout: float | None = None) -> FactPage:  # noqa: ASYNC109
        checks.name(user_id, "the user id")
        clock = self._clock
        latest = None if timeout is None else clock.monotonic() + checks.seconds(timeout, "the timeout")
        while True:
            waiter: Pending[None] = self._host.pending()
            self._waiters.append((user_id, waiter))  # listen first, then check, then wait
            try:
                page = self._since(user_id, after, MOST)
                left = POLL_INTERVAL if latest is None else min(POLL_INTERVAL, latest - clock.monotonic())
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
        with self._lock:
            count = self._number_new()
        return self._follow(user_id, encode(self._start, count) if after is None else after)

    def counted(self) -> list[Metric]:
        """Return the counters and histograms."""
        with self._lock:
            return self.metrics_kept.counted()

    def close(self) -> None:
        """End the stream for all subscribers."""
        self._closed = True
        _set(self._waiters + self._expecting_mail, None)

    # --- inside ----------------------------------------------------------------------------------

    async def _follow(self, user_id: str, cursor: str) -> AsyncIterator[Fact]:
        while (page := await self.wait(user_id, cursor)).is_over:
            cursor = page.cursor
            for fact in page.in_order(user_id):
                yield fact

    def _since(self, user_id: str, after: str, limit: int) -> FactPage:
        start, number = decode(after)
        with self._lock:
            count = self._number_new()
            kept = len(self._ring)
            oldest = count - kept
            gap = start != self._start or not oldest <= number <= count
            first = oldest if gap else number
            new = list(islice(reversed(self._ring), count - first))
        new.reverse()
        facts: list[Fact] = []
        reached = count
        for offset, row in enumerate(new, 1):
            if _is_for(user_id, row):
                if len(facts) == limit:
                    reached = first + offset - 1
                    break
                facts.append(self._fact(row, first + offset))
        return FactPage(tuple(facts), encode(self._start, reached), self._now(), gap, reached < count)

    def _newest(self, user_id: str, limit: int) -> FactPage:
        with self._lock:
            count = self._number_new()
            ring = list(self._ring)
        numbered = ((row, count - back) for back, row in enumerate(reversed(ring)))
        newest = list(islice(((row, number) for row, number in numbered if _is_for(user_id, row)), limit))
        facts = tuple(self._fact(row, number) for row, number in reversed(newest))
        return FactPage(facts, encode(self._start, count), self._now())

    def _fact(self, rows: FactRow, number: int) -> Fact:
        name, when, _, about, data, root = rows
        person = about is not None and about.endswith("/")
        kept = {key: str(value) if isinstance(value, str) else value for key, value in data.items()}
        return Fact(name, at(when), _owner(rows), None if person else about, kept, root, encode(self._start, number))

    def _now(self) -> datetime:
        return at(self._clock.now())

    def _wake(self, owners: set[str]) -> None:
        _set(self._waiters, None if "" in owners else owners)


def _set(waiters: list[tuple[str, Pending[None]]], users: set[str] | None) -> None:
    """Wake the waiters of these users; None: of all."""
    for user_id, waiter in list(waiters):
        if users is None or user_id in users:
            waiter.set(None)


def _owner(rows: FactRow) -> str:
    user_id, about = rows[2], rows[3]
    return user_id if user_id is not None else (about or "").rpartition("/")[0]


def _mailed(rows: Iterable[FactRow]) -> set[str]:
    """Return the users to whom mail was sent; a question about an approval is one too."""
    to = [row[4]["to"] for row in rows if row[0] is Name.MAIL_SENT]
    asked = {_owner(row) for row in rows if row[0] is Name.APPROVAL_ASKED}
    return asked | {address.removeprefix("user:") for address in to if address.startswith("user:")}


def _is_for(user_id: str, rows: FactRow) -> bool:
    """Return True for facts of this user, and for facts without an owner, such as a restarted worker."""
    return rows[2] == "" or _owner(rows) == user_id
