"""Folding of a log into a view.

Entries are applied in order, and each is checked against the view before it. Two kinds reach back: a *kick* and an
*end* void what their author had not seen: a kick the entries of the kicked participant, an end the entries of all.

A kick is checked once, when it is first reached, against the view of all entries before it. If it voids any of these,
the rest is folded again without them, and the kick stands: nothing that it voids can undo it. A later kick of its
author may.

An end must be valid both there and in the view its author had, which is the fold of what it had seen. That view is the
final state of the meeting.

The result for a prefix of the log depends only on that prefix. So a reader keeps checkpoints, and continues from the
last one before the first change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from roost.core.meetings.games.games import Games
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import EntryId, EntryKind, Kicked
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.log import Log, Placed
from roost.core.meetings.view import rules
from roost.core.meetings.view.view import Phase, View
from roost.errors import Forbidden

NEAR = 32
"""Positions kept at the end, and the interval of those kept before: late entries are mostly a little late."""
DECREES = (EntryKind.KICKED, EntryKind.ENDED)


@dataclass(frozen=True, slots=True)
class _Fold:
    """Result of folding a prefix. `judged`: for each kick and end, why it is void, or None."""

    view: View
    decrees: tuple[Entry, ...] = ()
    judged: Mapping[EntryId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rulebook:
    """Registry of games, and a cache. `ends`: the result of `_had` for each end, by its checksum."""

    games: Games
    ends: dict[str, View | str] = field(default_factory=dict)


def fold(log: Log, games: Games = GAMES) -> View:
    """Return the view of all placed entries."""
    return LogReader(games).read(log)


class LogReader:
    """Incremental reader of a growing log; same result as `fold`, at the cost of the new entries."""

    def __init__(self, games: Games = GAMES) -> None:
        self._rulebook = _Rulebook(games)
        self._order: tuple[Placed, ...] = ()
        self._marks: dict[int, _Fold] = {}

    def read(self, log: Log) -> View:
        start = self._mark_before(_first_change(self._order, log.order))
        done = self._marks.get(start) or _Fold(View(log.meeting, log.creator))
        self._order = log.order
        for position in range(start, len(log.order)):
            done = _next(done, log.order, position, self._rulebook)
            self._keep(position + 1, done)
        return done.view

    def _mark_before(self, position: int) -> int:
        """Drop checkpoints after this position, and return the last one left."""
        for later in [mark for mark in self._marks if mark > position]:
            del self._marks[later]
        return max(self._marks, default=0)

    def _keep(self, position: int, done: _Fold) -> None:
        self._marks[position] = done
        if (position - NEAR) % NEAR:
            self._marks.pop(position - NEAR, None)


def _first_change(old: Sequence[Placed], new: Sequence[Placed]) -> int:
    """Return the first position at which they differ, by bisection."""
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _next(done: _Fold, order: Sequence[Placed], position: int, rulebook: _Rulebook) -> _Fold:
    entry = order[position].entry
    if entry.kind not in DECREES:
        return replace(done, view=_step(done, done.view, entry, rulebook))
    why = _void(done.decrees, entry) or _refusal(done.view, entry, rulebook)
    if why is None and entry.kind is EntryKind.ENDED:
        had = _had(order, position, rulebook)
        if isinstance(had, View):
            return _ended(had, order, position, done)
        why = had
    judged = {**done.judged, entry.id: why or ""}
    if why is not None:
        return replace(done, view=_passed(done.view.with_refused(entry, why), entry), judged=judged)
    standing = tuple(decree for decree in done.decrees if not _voids(entry, decree))
    ruled = _Fold(done.view, (*standing, entry), judged)
    view = _folded(ruled, order[:position], rulebook) if _reaches_back(entry, done.view) else done.view
    return replace(ruled, view=_step(ruled, view, entry, rulebook))


def _had(order: Sequence[Placed], position: int, rulebook: _Rulebook) -> View | str:
    """Return the view that the author of an end had, or why the end is not valid in it."""
    entry, checksum = order[position].entry, order[position].checksum
    if checksum not in rulebook.ends:
        past = [placed for placed in order[:position] if entry.knew(placed.entry.id)]
        done = _Fold(View(order[0].entry.meeting, order[0].author))
        for earlier in range(len(past)):
            done = _next(done, past, earlier, rulebook)
        rulebook.ends[checksum] = _refusal(done.view, entry, rulebook) or done.view
    return rulebook.ends[checksum]


def _ended(had: View, order: Sequence[Placed], position: int, done: _Fold) -> _Fold:
    """Return the result of an end whose author had this view."""
    end = order[position].entry
    ended = _Fold(had, (end,), {**done.judged, end.id: ""})
    view = had
    for placed in order[:position]:
        if (why := _void(ended.decrees, placed.entry)) is not None:
            view = _passed(view.with_refused(placed.entry, why), placed.entry)
    return replace(ended, view=_passed(rules.decreed(view, end), end))


def _folded(done: _Fold, order: Sequence[Placed], rulebook: _Rulebook) -> View:
    """Fold these entries again from the start, under later kicks and ends."""
    view = View(done.view.meeting, done.view.creator)
    for placed in order:
        view = _step(done, view, placed.entry, rulebook)
    return view


def _step(done: _Fold, view: View, entry: Entry, rulebook: _Rulebook) -> View:
    why = _void(done.decrees, entry)
    if why is None and entry.id in done.judged:
        why = done.judged[entry.id] or None
    if why is not None:
        return _passed(view.with_refused(entry, why), entry)
    if entry.id in done.judged:
        return _passed(rules.decreed(view, entry), entry)
    try:
        return _passed(rules.after(view, entry, rulebook.games), entry)
    except Forbidden as refusal:
        tried = view.tries + (
            entry.kind is EntryKind.MOVED and view.phase is Phase.RUNNING and view.is_in(entry.author)
        )
        return _passed(replace(view, tries=tried).with_refused(entry, str(refusal)), entry)


def _passed(view: View, entry: Entry) -> View:
    return replace(view, seen={**view.seen, entry.author: entry.number}, at=entry.at.ms)


def _refusal(view: View, entry: Entry, rulebook: _Rulebook) -> str | None:
    try:
        rules.after(view, entry, rulebook.games)
    except Forbidden as refusal:
        return str(refusal)
    return None


def _void(decrees: Sequence[Entry], entry: Entry) -> str | None:
    for decree in decrees:
        if _voids(decree, entry):
            if isinstance(decree.body, Kicked):
                return f"{decree.author} had not seen it when it kicked {entry.author}: a new invitation is needed"
            return f"{decree.author} had not seen it when it ended the meeting: call another one"
    return None


def _voids(decree: Entry, entry: Entry) -> bool:
    if decree is entry or decree.id == entry.id or decree.knew(entry.id):
        return False
    if isinstance(decree.body, Kicked):
        return entry.author == decree.body.who and not entry.knew(decree.id)
    return True


def _reaches_back(kick: Entry, view: View) -> bool:
    """Return whether it voids any earlier entry."""
    who = kick.body.who if isinstance(kick.body, Kicked) else kick.author
    count = view.seen.get(who, 0)
    return count > 0 and not kick.knew(EntryId(who, count))
