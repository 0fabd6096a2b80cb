"""Counts of the unfinished bucket in RAM, by user: what happens between two writes of the figures."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.limits.usage import NOTHING as UNUSED
from roost.core.limits.usage import Usage
from roost.core.monitoring.facts import FactRow, Name, owner_of
from roost.core.monitoring.figures import BINS, BOUNDS, NARROW, OTHERS, FigureName, bin_of
from roost.core.runs import Closing, RunOutcome, Verdict
from roost.ports import Clock
from roost.stores.sql.figures import FigureRow

MOST_PAIRS = 20_000
"""Pairs of senders and recipients in one bucket; messages between others are counted together."""
PAIRS_OF_USER = 200
MOST_ROWS = 200_000
"""Rows that are kept for a store that cannot be written."""
LABEL = 100
"""Longest label of a figure: a brain may name its faults as it likes."""
ENDED = frozenset({Verdict.DONE, Verdict.RETRY, Verdict.DEAD, Verdict.CANCELLED, Verdict.INTERRUPTED})
MESSAGE = "message"
"""Kind of messages between agents that leave no run."""
CHANGES = frozenset(
    {
        Name.AGENT_CREATED,
        Name.AGENT_STARTED,
        Name.AGENT_STOPPED,
        Name.AGENT_PAUSED,
        Name.AGENT_RESUMED,
        Name.AGENT_DELETED,
        Name.AGENT_SLEPT,
        Name.AGENT_WOKE,
    }
)
Key = tuple[str, FigureName, str, int]
Pair = tuple[str, str]


class _Turns:
    """Durations of finished turns, and of their waits before, in bins."""

    __slots__ = ("ran", "runs", "waited", "waits")

    def __init__(self) -> None:
        self.runs, self.waits = [0] * BINS, [0] * BINS
        self.ran = self.waited = 0.0


class FigureCounts:
    """Counts by bucket. Not safe for threads: callers hold the lock of the fact stream.

    Each call that counts is quick, since it follows each commit: it looks up one entry of a dictionary for each value.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = self._bucket()
        self._values: dict[Key, list[float]] = {}
        self._turns: dict[tuple[str, str], _Turns] = {}
        """Finished turns by user and kind."""
        self._pairs: dict[Pair, int] = defaultdict(int)
        self._finished: list[FigureRow] = []
        """Rows of earlier buckets that are not written yet."""

    def _bucket(self) -> int:
        return int(self._clock.now()) // NARROW * NARROW

    def advance(self) -> None:
        """Begin a new bucket if it is time; called before values of now are counted."""
        if not self._start <= self._clock.now() < self._start + NARROW:
            self._finish()
            self._start = self._bucket()

    def take(self, *, all_of_it: bool = False) -> list[FigureRow]:
        """Return the rows of finished buckets, and drop them here; `all_of_it`: also those of the unfinished one."""
        if all_of_it:
            self._finish()
        self.advance()
        taken, self._finished = _merged(self._finished), []
        return taken

    def give_back(self, rows: Iterable[FigureRow]) -> None:
        """Keep rows that could not be written, up to a bound."""
        self._finished += rows
        del self._finished[MOST_ROWS:]

    def forget(self, user_id: str) -> None:
        """Drop everything of a user who is being deleted."""
        self._finish()
        self._finished = [row for row in self._finished if row.user_id != user_id]

    # --- counting --------------------------------------------------------------------------------

    def add(self, user_id: str, name: FigureName, label: str = "", value: float = 1.0, number: int = 0) -> None:
        key = (user_id, name, label, number)
        known = self._values.get(key)
        if known is None:
            self._values[key] = [1, value]
        else:
            known[0] += 1
            known[1] += value

    def measured(self, user_id: str, name: FigureName, label: str, seconds: float) -> None:
        """Add a duration."""
        self.add(user_id, name, label, seconds, bin_of(seconds))

    def settled(self, c: Closing, fault: str | None) -> None:
        """Count a settled attempt of an agent."""
        e = c.envelope
        user_id = e.address.rpartition("/")[0]
        self._ended(user_id, c, e.kind if e.recorded or e.kind is not Kind.TASK else MESSAGE)
        if c.usage is not UNUSED:
            self._spent(user_id, c.profile, c.usage)
        if fault is not None:
            self.add(user_id, FigureName.ERRORS, str(fault)[:LABEL])

    def talk_ended(self, user_id: str, c: Closing, outcome: RunOutcome) -> None:
        """Count the end of a run of a talk."""
        self.advance()
        if outcome is RunOutcome.LOST:
            self.add(user_id, FigureName.LOST, Kind.TALK)
        elif outcome is not RunOutcome.WAITING:
            self._ended(user_id, c, Kind.TALK)
        self._spent(user_id, c.profile, c.usage)
        if c.fault and outcome is not RunOutcome.STOPPED:
            self.add(user_id, FigureName.ERRORS, str(c.fault)[:LABEL])

    def cut_off(self, e: Envelope, outcome: RunOutcome, profile: str, usage: Usage) -> None:
        """Count a run that was cancelled, or whose thread was lost."""
        self.advance()
        user_id = e.address.rpartition("/")[0]
        if outcome is RunOutcome.LOST:
            self.add(user_id, FigureName.LOST, e.kind)
        self._spent(user_id, profile, usage)

    def died(self, letters: Iterable[DeadLetter]) -> None:
        self.advance()
        for letter in letters:
            self.add(letter.user_id, FigureName.DEAD_LETTERS, letter.kind)

    def late(self, addresses: Iterable[str], seconds: float) -> None:
        """Count timers that fired late, once for each user."""
        self.advance()
        for user_id in {address.rpartition("/")[0] for address in addresses}:
            self.measured(user_id, FigureName.LATENESS, "", seconds)

    def posted(self, envelopes: Iterable[Envelope]) -> None:
        """Count who talks to whom."""
        pairs = self._pairs
        for e in envelopes:
            pairs[e.sender, e.address] += 1
        if len(pairs) > MOST_PAIRS:
            self._fold_pairs()

    def reported(self, rows: Sequence[FactRow]) -> None:
        """Count changes of agents, and mail to persons, which has no envelope."""
        for row in rows:
            name = row[0]
            if name in CHANGES:
                self.add(owner_of(row), FigureName.CHANGES, name)
            elif name is Name.MAIL_SENT and row[4]["to"].startswith("user:"):
                self._pairs[row[4]["from"], row[4]["to"]] += 1

    # --- inside ----------------------------------------------------------------------------------

    def _ended(self, user_id: str, c: Closing, kind: str) -> None:
        """Count the end of a turn. Plain messages come here, too, by tens of thousands a second."""
        if c.run_id and c.verdict in ENDED:
            turns = self._turns.get((user_id, kind))
            if turns is None:
                turns = self._turns[user_id, kind] = _Turns()
            e, started = c.envelope, c.started
            ran, waited = c.ended - started, started - (e.due or e.created)
            turns.runs[bisect_left(BOUNDS, ran)] += 1
            turns.waits[bisect_left(BOUNDS, waited)] += 1
            turns.ran += ran
            turns.waited += waited

    def _spent(self, user_id: str, profile: str, usage: Usage) -> None:
        if not usage.tokens:
            return
        self.add(user_id, FigureName.TOKENS, "input", usage.input_tokens)
        self.add(user_id, FigureName.TOKENS, "output", usage.output_tokens)
        if usage.cost is not None:
            self.add(user_id, FigureName.COST, profile[:LABEL], usage.cost)

    def _finish(self) -> None:
        """Turn the counts of the bucket into rows."""
        values, turns, start = self._values, self._turns, self._start
        if values or turns:
            self._values, self._turns = {}, {}
            self._finished += [
                FigureRow(user_id, name, start, label, number, int(count), total)
                for (user_id, name, label, number), (count, total) in values.items()
            ]
            for (user_id, kind), kept in turns.items():
                self._finished += _rows_of_bins(user_id, FigureName.RUNS, start, kind, kept.runs, kept.ran)
                self._finished += _rows_of_bins(user_id, FigureName.WAITED, start, kind, kept.waits, kept.waited)
        if self._pairs:
            self._fold_pairs()

    def _fold_pairs(self) -> None:
        """Turn pairs into rows: the most frequent ones of each user, and all others together."""
        start, pairs = self._start, self._pairs
        self._pairs = defaultdict(int)
        self._finished += _rows_of_pairs(pairs, start)


def _rows_of_bins(
    user_id: str, name: FigureName, start: int, label: str, bins: list[int], total: float
) -> Iterator[FigureRow]:
    """Yield a row for each bin with values; the first one has their sum."""
    for number, count in enumerate(bins):
        if count:
            yield FigureRow(user_id, name, start, label, number, count, max(0.0, total))
            total = 0.0


def _rows_of_pairs(pairs: dict[Pair, int], start: int) -> list[FigureRow]:
    """Return rows of the most frequent pairs of each user, and of all others together."""
    of_users: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (sender, to), count in pairs.items():
        recipient = to if to.startswith(("user:", "agent:")) else f"agent:{to}"
        for owner in {_owner(sender), _owner(recipient)} - {""}:
            ends = (one if _owner(one) in ("", owner) else OTHERS for one in (sender, recipient))
            of_users[owner]["\n".join(ends)] += count
    rows: list[FigureRow] = []
    for user_id, counts in of_users.items():
        ordered = sorted(counts.items(), key=lambda one: -one[1])
        kept, rest = ordered[:PAIRS_OF_USER], sum(count for _, count in ordered[PAIRS_OF_USER:])
        for label, count in [*kept, *([(f"{OTHERS}\n{OTHERS}", rest)] if rest else [])]:
            rows.append(FigureRow(user_id, FigureName.SENT, start, label, 0, count, float(count)))
    return rows


def _merged(rows: list[FigureRow]) -> list[FigureRow]:
    """Return one row for each key: a bucket may have been finished twice."""
    merged: dict[tuple[str, str, int, str, int], FigureRow] = {}
    for row in rows:
        key = (row.user_id, row.name, row.start, row.label, row.bin)
        known = merged.get(key)
        merged[key] = row if known is None else FigureRow(*key, known.count + row.count, known.total + row.total)
    return list(merged.values())


def _owner(address: str) -> str:
    """Return the user of an address; none of a schedule."""
    kind, _, rest = address.partition(":")
    return rest if kind == "user" else rest.rpartition("/")[0] if kind == "agent" else ""
