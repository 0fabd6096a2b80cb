"""Stream of facts about what has happened, and the metrics that are counted with it.

The newest facts of all users are kept in a ring in RAM. Recording one costs an append; they become `Fact`s when they
are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.envelopes.effects import Broadcast, Effect, Publish, SendMail, SendTask, urgent_mail
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.limits.limits import Limits
from roost.core.limits.usage import NOTHING as UNUSED
from roost.core.limits.usage import Usage
from roost.core.meetings.effects import MeetingEffect, WriteEntry
from roost.core.meetings.log.bodies import Called, Ended
from roost.core.memory.memories import Remember
from roost.core.monitoring.facts import Fact, FactPage, Name, decode, encode
from roost.core.monitoring.metrics import Metric
from roost.core.runs import Closing, RunOutcome, Settled, Verdict
from roost.core.talks.messages import MOST, at
from roost.core.values import checks
from roost.ports import Host, Pending
from roost.runtime.monitoring.metrics import Metrics

SLOW_LOOK = 5.0
EXPIRED = "expired"
FULL = "full"
NOTHING: Mapping[str, Any] = {}
ENDS = {
    Verdict.DONE: Name.TASK_DONE,
    Verdict.RETRY: Name.TASK_RETRIED,
    Verdict.DEAD: Name.TASK_FAILED,
    Verdict.CANCELLED: Name.TASK_CANCELLED,
}
INCOMING = 256
"""Facts that are numbered together, if nobody asks for them before."""
_Told = tuple[Name, float, str | None, str | None, Mapping[str, Any], str]
"""A fact as it is kept; without a user it is about an agent (`ann/d`), or done by a person (`ann/`)."""


class FactStream:
    """Any thread may call. Facts are recorded after their commit."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self._host = host
        self._clock = host.clock
        self.metrics_kept = Metrics()
        self._lock = host.lock()
        self._start = host.new_id("monitor").rpartition("_")[2]
        self._ring: deque[_Told] = deque(maxlen=limits.facts_kept)
        self._count = 0
        self._incoming: deque[_Told] = deque()
        """Facts that are not in the ring yet, so that recording takes no lock."""
        self._bells: list[tuple[str, Pending[None]]] = []
        self._closed = False

    # --- telling ---------------------------------------------------------------------------------

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
        self._tell(((name, self._clock.now(), user_id, about, data, root),))

    def _tell(self, told: Sequence[_Told]) -> None:
        self._incoming.extend(told)
        if len(self._incoming) > INCOMING:
            with self._lock:
                self._take_in()
        if self._bells and told:
            self._wake({_owner(one) for one in told})

    def _take_in(self) -> int:
        """Number new facts, with the lock held; return the count."""
        incoming = self._incoming
        for _ in range(len(incoming)):
            self._ring.append(incoming.popleft())
            self._count += 1
        return self._count

    def began(self, envelope: Envelope, run_id: str) -> None:
        """An agent has begun with something. Plain messages leave no record and no fact, unless they fail."""
        if envelope.recorded or envelope.kind is not Kind.TASK:
            now, e = self._clock.now(), envelope
            data = {"run_id": run_id, "kind": e.kind, "envelope_id": e.envelope_id, "attempt": e.attempts}
            told: list[_Told] = [(Name.RUN_STARTED, now, None, e.address, data, e.origin)]
            if e.recorded and e.attempts == 1:
                told.append((Name.TASK_STARTED, now, None, e.address, {"task_id": e.envelope_id}, e.origin))
            self._tell(told)

    def settled(self, closings: tuple[Closing, ...], all_settled: tuple[Settled, ...]) -> None:
        told: list[_Told] = []
        metrics = self.metrics_kept
        with self._lock:
            for c, one in zip(closings, all_settled, strict=True):
                if not one.taken:
                    continue
                verdict, e = c.verdict, c.envelope
                metrics.settled[(verdict,)] += 1
                if c.run_id:
                    metrics.ran(e.kind, c.outcome, c.ended - c.started)
                    metrics.spent(c.profile, c.usage)
                if verdict is not Verdict.DONE or e.recorded or e.kind is not Kind.TASK:
                    _ended(told, c, metrics)
                if c.sent or c.sleep is not None:
                    asleep = c.sleep is not None
                    _acted(told, c.sent, one.posted, e.address, e.origin, c.ended, asleep=asleep)
        if told:
            self._tell(told)

    def cut_off(
        self,
        envelope: Envelope,
        run_id: str,
        outcome: RunOutcome,
        started: float,
        profile: str = "",
        usage: Usage = UNUSED,
    ) -> None:
        """A run of an agent is over, and nothing comes of it: it was cancelled, or its thread was lost."""
        now = self._clock.now()
        with self._lock:
            self.metrics_kept.ran(envelope.kind, outcome, now - started)
            self.metrics_kept.spent(profile, usage)
        data = {"run_id": run_id, "kind": envelope.kind, "envelope_id": envelope.envelope_id, "outcome": outcome}
        data |= usage.facts()
        self._tell(((Name.RUN_ENDED, now, None, envelope.address, data, envelope.origin),))

    def talk_began(self, user_id: str, talk_id: str, run_id: str, root: str) -> None:
        self.record(Name.RUN_STARTED, talk_id, {"run_id": run_id, "kind": Kind.TALK}, root=root, user_id=user_id)

    def talk_settled(self, user_id: str, c: Closing, settled: Settled) -> None:
        now, root = self._clock.now(), c.envelope.origin
        outcome = c.outcome if settled.taken else RunOutcome.STOPPED
        data = {"run_id": c.run_id, "kind": Kind.TALK, "outcome": outcome, "seconds": now - c.started}
        data |= c.usage.facts()
        told: list[_Told] = []
        with self._lock:
            self.metrics_kept.ran(Kind.TALK, outcome, now - c.started)
            self.metrics_kept.spent(c.profile, c.usage)
            if c.fault and outcome is not RunOutcome.STOPPED:
                self.metrics_kept.faults[(c.fault,)] += 1
                data["fault"] = c.fault
            told.append((Name.RUN_ENDED, now, user_id, c.envelope.lane, data, root))
            if settled.taken and (c.sent or c.sleep is not None):
                address, asleep = c.envelope.address or f"{user_id}/", c.sleep is not None
                _acted(told, c.sent, settled.posted, address, root, now, asleep=asleep)
        self._tell(told)

    def sent(self, address: str, effects: tuple[Effect, ...], posted: tuple[Envelope, ...], root: str = "") -> None:
        """Record what a running turn, or a person (`ann/`), has sent, and the envelopes that were posted."""
        told: list[_Told] = []
        _acted(told, effects, posted, address, root, self._clock.now())
        self._tell(told)

    def died(self, letters: Sequence[DeadLetter]) -> None:
        """There are new dead letters, of whatever kind and wherever they come from."""
        now = self._clock.now()
        with self._lock:
            self.metrics_kept.dead += len(letters)
        self._tell([one for letter in letters for one in _death(letter, now)])

    def posted(self, envelopes: Iterable[Envelope]) -> None:
        with self._lock:
            for envelope in envelopes:
                self.metrics_kept.posted[(envelope.kind,)] += 1

    def ticked(self, posted: Iterable[Envelope], late: float | None) -> None:
        now = self._clock.now()
        told: list[_Told] = []
        for e in posted:
            if e.sender.startswith("schedule:"):
                data = {"schedule_id": e.sender.removeprefix("schedule:"), "task_id": e.envelope_id}
                told.append((Name.SCHEDULE_TICKED, now, None, e.address, data, e.origin))
                told.append((Name.TASK_SENT, now, None, e.address, {"task_id": e.envelope_id}, e.origin))
        if late is not None:
            with self._lock:
                self.metrics_kept.late.add(late)
        self._tell(told)

    def restarted(self, worker: str) -> None:
        with self._lock:
            self.metrics_kept.restarts += 1
        self.record(Name.WORKER_RESTARTED, None, {"worker": worker}, user_id="")

    def breaker(self, provider: str, *, is_open: bool) -> None:
        """A provider is not asked for a while, or answers again."""
        name = Name.PROVIDER_PAUSED if is_open else Name.PROVIDER_RESUMED
        self.record(name, None, {"provider": provider}, user_id="")

    # --- being asked -----------------------------------------------------------------------------

    def facts(self, user_id: str, after: str | None, limit: int) -> FactPage:
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return self._newest(user_id, limit) if after is None else self._since(user_id, after, limit)

    async def wait(self, user_id: str, after: str, timeout: float | None = None) -> FactPage:  # noqa: ASYNC109
        checks.name(user_id, "the user id")
        clock = self._clock
        latest = None if timeout is None else clock.monotonic() + checks.seconds(timeout, "the timeout")
        while True:
            bell: Pending[None] = self._host.pending()
            self._bells.append((user_id, bell))  # listen first, then look, then wait
            try:
                page = self._since(user_id, after, MOST)
                left = SLOW_LOOK if latest is None else min(SLOW_LOOK, latest - clock.monotonic())
                if page.is_over or self._closed or left <= 0:
                    return page
                await bell.within(left)
            finally:
                self._bells.remove((user_id, bell))

    def follow(self, user_id: str, after: str | None) -> AsyncIterator[Fact]:
        checks.name(user_id, "the user id")
        if after is not None:
            decode(after)
        with self._lock:
            count = self._take_in()
        return self._follow(user_id, encode(self._start, count) if after is None else after)

    def counted(self) -> list[Metric]:
        """Return the metrics that are counted while things happen."""
        with self._lock:
            return self.metrics_kept.counted()

    def close(self) -> None:
        """End the stream for all subscribers."""
        self._closed = True
        self._wake(None)

    # --- inside ----------------------------------------------------------------------------------

    async def _follow(self, user_id: str, cursor: str) -> AsyncIterator[Fact]:
        while (page := await self.wait(user_id, cursor)).is_over:
            cursor = page.cursor
            for fact in page.in_order(user_id):
                yield fact

    def _since(self, user_id: str, after: str, limit: int) -> FactPage:
        start, number = decode(after)
        with self._lock:
            count = self._take_in()
            kept = len(self._ring)
            oldest = count - kept
            gap = start != self._start or not oldest <= number <= count
            first = oldest if gap else number
            new = list(islice(reversed(self._ring), count - first))
        new.reverse()
        theirs: list[Fact] = []
        reached = count
        for offset, one in enumerate(new, 1):
            if _is_for(user_id, one):
                if len(theirs) == limit:
                    reached = first + offset - 1
                    break
                theirs.append(self._fact(one, first + offset))
        return FactPage(tuple(theirs), encode(self._start, reached), self._now(), gap, reached < count)

    def _newest(self, user_id: str, limit: int) -> FactPage:
        with self._lock:
            count = self._take_in()
            ring = list(self._ring)
        numbered = ((one, count - back) for back, one in enumerate(reversed(ring)))
        newest = list(islice(((one, number) for one, number in numbered if _is_for(user_id, one)), limit))
        facts = tuple(self._fact(one, number) for one, number in reversed(newest))
        return FactPage(facts, encode(self._start, count), self._now())

    def _fact(self, told: _Told, number: int) -> Fact:
        name, when, _, about, data, root = told
        person = about is not None and about.endswith("/")
        kept = {key: str(value) if isinstance(value, str) else value for key, value in data.items()}
        return Fact(name, at(when), _owner(told), None if person else about, kept, root, encode(self._start, number))

    def _now(self) -> datetime:
        return at(self._clock.now())

    def _wake(self, owners: set[str] | None) -> None:
        for user_id, bell in list(self._bells):
            if owners is None or user_id in owners or "" in owners:
                bell.set(None)


def _owner(told: _Told) -> str:
    user_id, about = told[2], told[3]
    return user_id if user_id is not None else (about or "").rpartition("/")[0]


def _is_for(user_id: str, told: _Told) -> bool:
    """Return True for facts of this user, and for facts without an owner, such as a restarted worker."""
    return told[2] == "" or _owner(told) == user_id


def _ended(told: list[_Told], c: Closing, metrics: Metrics) -> None:
    """Append the facts of an attempt that is over."""
    e, verdict, when, root = c.envelope, c.verdict, c.ended, c.envelope.origin
    failed = verdict is Verdict.RETRY or verdict is Verdict.DEAD
    fault = str(c.fault) if failed and c.fault else None
    if fault is not None:
        metrics.faults[(fault,)] += 1
    if c.run_id:
        data: dict[str, Any] = {
            "run_id": c.run_id,
            "kind": e.kind,
            "envelope_id": e.envelope_id,
            "outcome": c.outcome,
            "attempt": e.attempts,
            "seconds": c.ended - c.started,
        }
        data |= c.usage.facts()
        if fault is not None:
            data["fault"] = fault
        told.append((Name.RUN_ENDED, when, None, e.address, data, root))
    if e.recorded and verdict not in (Verdict.RELEASED, Verdict.WAITING, Verdict.REPEATED):
        data = {"task_id": e.envelope_id, "attempt": e.attempts}
        if failed:
            data |= {"fault": fault, "reason": c.reason}
        name = Name.TASK_EXPIRED if fault == EXPIRED else ENDS[verdict]
        told.append((name, when, None, e.address, data, root))
    elif e.kind is Kind.MAIL and verdict is Verdict.DONE:
        told.append((Name.MAIL_PROCESSED, when, None, e.address, {"mail_id": e.body}, root))
    if verdict is Verdict.DEAD and fault != EXPIRED:
        data = {"envelope_id": e.envelope_id, "kind": e.kind, "fault": fault, "reason": c.reason}
        told.append((Name.AGENT_FAILED, when, None, e.address, data, root))


def _acted(
    told: list[_Told],
    effects: Sequence[Effect],
    posted: Sequence[Envelope],
    address: str,
    root: str,
    when: float,
    *,
    asleep: bool = False,
) -> None:
    """Append the facts of what a turn or a person has sent; `address` names the sender."""
    if asleep:
        told.append((Name.AGENT_SLEPT, when, None, address, {"by": "its turn"}, root))
    if all(type(e) is SendTask and not e.envelope.recorded for e in effects):
        return  # plain messages
    there = {e.envelope_id for e in posted}
    for effect in effects:
        if type(effect) is Remember:
            continue  # nobody's but the agent's
        if isinstance(effect, MeetingEffect):
            told += [(name, when, None, address, data, root) for name, data in _written(effect)]
            continue
        told += _sent(effect, there, address, root, when)


def _written(effect: MeetingEffect) -> Iterator[tuple[Name, dict[str, Any]]]:
    """Yield the facts of an entry; other participants get their own."""
    if type(effect) is WriteEntry and isinstance(effect.body, Called | Ended):
        name = Name.MEETING_CALLED if isinstance(effect.body, Called) else Name.MEETING_ENDED
        yield name, {"meeting_id": effect.meeting_id, "participant": effect.participant}


def _sent(effect: Effect, there: set[str], address: str, root: str, when: float) -> Iterator[_Told]:
    if type(effect) is SendTask:
        e = effect.envelope
        if e.recorded and e.envelope_id in there:
            yield Name.TASK_SENT, when, None, e.address, {"task_id": e.envelope_id, "sender": e.sender}, e.origin
    elif type(effect) is SendMail:
        if effect.envelope is None or effect.envelope.envelope_id in there:
            data = {"mail_id": effect.mail_id, "from": effect.sender, "to": effect.recipient}
            yield Name.MAIL_SENT, when, None, address, data, root or effect.origin
            if (event := urgent_mail(effect)) is not None:
                yield _published(event, address, root, when)
    elif type(effect) is Broadcast:
        told = {"broadcast_id": effect.broadcast_id, "from": effect.sender, "agents": len(effect.envelopes)}
        yield Name.BROADCAST_SENT, when, None, address, told, root or effect.broadcast_id
    else:
        assert type(effect) is Publish
        yield _published(effect, address, root, when)


def _published(event: Publish, address: str, root: str, when: float) -> _Told:
    """Return the fact for the owner whose agents receive the event; of urgent mail, its recipient."""
    about = address if address.startswith(f"{event.user_id}/") else f"{event.user_id}/"
    data = {"event_id": event.event_id, "event": event.name}
    return Name.EVENT_PUBLISHED, when, None, about, data, root or event.root or event.event_id


def _death(letter: DeadLetter, when: float) -> Iterator[_Told]:
    about, data = f"{letter.user_id}/{letter.agent_id or ''}", {"fault": letter.fault, "reason": letter.reason}
    if letter.fault == FULL and letter.envelope.get("recorded"):  # the tick of a schedule: a task that nobody could try
        task = {"task_id": letter.envelope["envelope_id"], "attempt": 0, **data}
        yield Name.TASK_FAILED, when, None, about, task, letter.origin
    data = {"letter_id": letter.letter_id, "kind": letter.kind, **data}
    yield Name.LETTER_DIED, when, None, about, data, letter.origin
