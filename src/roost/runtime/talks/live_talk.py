"""Talks in RAM: their newest messages, the text being written, and the readers that wait.

The copy in RAM follows the store: callbacks change it after each commit, in the order of commits. Only the text being
written is ahead of the store. A talk is loaded through the writer, so that no commit is missed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Any

from roost.core.talks import side_channels as notes
from roost.core.talks.messages import Cursor, Message, Page, Status, TalkLog
from roost.core.talks.runs import Claimed, Halted, Loaded, Opened, Posted, TalkUpdate
from roost.core.talks.talk import Talk
from roost.ports import Bell, Host
from roost.runtime.talks.live_text import LiveText

KEPT, MOST = 1_000, 2_000
"""Messages of a talk in RAM: when there are more than `MOST`, the newest `KEPT` stay."""
CHANGES = 20_000
"""Largest number of changes of messages in RAM."""


class LiveTalk:
    """One talk in RAM. All methods may be called from any thread."""

    revision: int
    _floor: int
    _messages: list[Message]
    _first: int
    _withdrawn: int
    _changes: list[tuple[int, int]]

    def __init__(self, host: Host, loaded: Loaded, generation: str = "") -> None:
        self._host = host
        self._lock = host.lock()
        self.talk: Talk = loaded.talk
        self.owner = self.talk.user_id
        self.talk_id = self.talk.talk_session_id
        self.log = TalkLog(self.talk_id, generation)
        self.epoch: int = loaded.epoch
        self.state: str | None = loaded.state
        self.waiting = 1 if loaded.talk.running else 0
        self.gone = False
        """True if it was deleted or may differ from the store: it must be loaded again."""
        self.missed = False
        """True if another node has changed it: it must be refreshed."""
        self._in_cluster = bool(loaded.node)
        self.is_parked = loaded.is_parked
        """True if its run waits for a person; nothing of the run is in RAM."""
        self.touched = False
        self.used = host.clock.monotonic()
        self.answer: LiveText | None = None
        self.waiters: list[Bell] = []
        self.nothing_new: Page | None = None
        self.needed = 1 << 62
        """Number of the oldest message that waits for an answer: it and all later ones stay in RAM."""
        self._fill(loaded)

    # --- following the store ---------------------------------------------------------------------

    def posted(self, posted: Posted) -> None:
        with self._lock:
            self._post(posted)

    def follow(self, posted: Posted) -> bool:
        """Follow a commit of another node; return False if the talk must be refreshed instead."""
        with self._lock:
            is_next = posted.revision == self.revision + 1 and not (self.gone or self.missed or self.is_parked)
            if is_next and not (posted.was_parked or posted.repeated):
                self._post(posted)
                return True
            return False

    def opened(self, opened: Opened, text: LiveText) -> None:
        with self._lock:
            text.message = opened.message
            self.answer = text
            self._set(opened.message, opened.revision)
            self._advance(opened.revision, self.epoch, waiting=1)

    def settled(self, settled: TalkUpdate) -> None:
        with self._lock:
            if settled.message is not None:
                self._set(settled.message, settled.revision)
                self.answer = None
            self.is_parked = settled.parked
            if settled.revision:
                self._advance(settled.revision, settled.epoch, waiting=settled.waiting)

    def claimed(self, claimed: Claimed | None) -> None:
        if claimed is None:
            return
        with self._lock:
            self.is_parked = False
            if claimed.message is not None:
                self._set(claimed.message, claimed.revision)
                self.answer = None
            self._advance(claimed.revision, claimed.epoch, waiting=len(claimed.envelopes))

    def stopped(self, halted: Halted) -> None:
        with self._lock:
            self.is_parked = False
            if halted.message is not None:
                self._set(halted.message, halted.revision)
            self._advance(halted.revision, halted.epoch, waiting=0)

    def changed(self, talk: Talk, revision: int) -> None:
        with self._lock:
            self.talk = talk
            self._advance(revision, self.epoch, waiting=self.waiting)

    def refresh(self, loaded: Loaded) -> None:
        """Follow what other nodes have committed; the text being written stays, if its message is still open."""
        with self._lock:
            self.missed = False
            if loaded.revision < self.revision:
                return  # a commit of this node is newer
            if loaded.messages and loaded.messages[0][0].seq > self.needed:
                self.gone = True  # to be loaded again, with all messages that wait for an answer
                return
            answer = self.answer
            self.talk, self.epoch, self.state = loaded.talk, max(self.epoch, loaded.epoch), loaded.state
            self.waiting = 1 if loaded.talk.running else 0
            self.is_parked = loaded.is_parked
            self._fill(loaded)
            if answer is not None and answer.message is not None and not self._is_open(answer.message):
                self.answer = None
            self.nothing_new = None
        self.wake()

    def miss(self) -> None:
        """Mark it as changed by another node, and wake its readers, which refresh it."""
        with self._lock:
            self.missed = True
            self.nothing_new = None
        self.wake()

    @property
    def settings(self) -> tuple[str, str, str, Any]:
        """Return title, profile, busy policy and options."""
        talk = self.talk
        return talk.title, talk.profile, str(talk.busy), dict(talk.options)

    def drop(self) -> None:
        """Mark it as deleted or as different from the store, and wake its readers."""
        with self._lock:
            self.gone = True
            self.nothing_new = None
        self.wake()

    def retire(self) -> bool:
        """Drop it if nothing runs and no reader waits; return whether it was dropped."""
        with self._lock:
            if (self.running and not self.is_parked) or self.waiters:
                return False
            self.gone = True
            self.nothing_new = None
            return True

    def knows(self, seq: int) -> bool:
        with self._lock:
            return seq < self._first + len(self._messages)

    # --- the text being written ------------------------------------------------------------------

    def grown(self) -> None:
        """Wake the readers after the answer has grown. Called for every chunk, so it is cheap when no reader waits."""
        if self.waiters:
            self.wake()

    def wake(self) -> None:
        waiters = self.waiters
        while waiters:
            try:
                bell = waiters.pop()
            except IndexError:
                return
            bell.ring()

    # --- reading ---------------------------------------------------------------------------------

    def context(self, numbers: list[int]) -> tuple[list[Message], list[Message], int]:
        """Return for a brain the new messages, the other ones in RAM, and the number of the oldest one in RAM."""
        with self._lock:
            known, count = self._messages, len(numbers)
            if not self._withdrawn and [m.seq for m in known[-count:]] == numbers:
                return known[-count:], known[:-count], self._first
            shown = [m for m in known if m.status is not Status.WITHDRAWN]
            new = set(numbers)
            return [m for m in shown if m.seq in new], [m for m in shown if m.seq not in new], self._first

    @property
    def first(self) -> int:
        """Return the number of the oldest message in RAM."""
        return self._first

    def prepend(self, older: list[Message]) -> None:
        """Add messages from the store, if they end where those in RAM begin."""
        with self._lock:
            if older and older[-1].seq == self._first - 1:
                self._messages[:0] = older
                self._first = older[0].seq
                self._withdrawn += sum(m.status is Status.WITHDRAWN for m in older)

    def message(self, seq: int) -> Message:
        with self._lock:
            return self._get(seq)

    def newest(self, limit: int) -> Page | None:
        """Return the newest messages; None if some of them are only in the store."""
        with self._lock:
            if len(self._messages) < limit and self._first > 1:
                return None
            return self._newest(limit)

    def loaded(self, limit: int) -> Page:
        """Return the newest messages, or fewer of them if some are only in the store."""
        with self._lock:
            return self._newest(limit)

    def since(self, cursor: Cursor, limit: int) -> Page | None:
        """Return the changes since the cursor; None if some of them are only in the store."""
        with self._lock:
            if cursor.revision < self._floor:
                return None
            numbers = set[int]()
            if cursor.revision < self.revision:
                start = bisect_right(self._changes, (cursor.revision, 1 << 62))
                numbers = {seq for _, seq in self._changes[start:] if seq > cursor.position}
            answer = self.answer
            if answer is not None and answer.message is not None and cursor.position < answer.message.seq:
                seq = answer.message.seq
                if (cursor.seq, cursor.offset, cursor.noted) != (seq, answer.length, answer.noted):
                    numbers.add(seq)
            chosen = sorted(numbers)
            if len(chosen) > limit:
                return self._partial_page(chosen[:limit], cursor)
            return self._last_page(chosen, cursor)

    def reached(self, cursor: Cursor) -> int:
        """Return the revision up to which a reader with this cursor has seen all changes."""
        with self._lock:
            return self._reached(cursor)

    def placed(self, onward: Cursor, shown: list[Message], before: Cursor) -> Cursor:
        """Return `onward` with the reader's position in the text being written. `before`: its previous cursor."""
        with self._lock:
            at = self._cursor(tuple(shown), before)
            return replace(onward, seq=at.seq, offset=at.offset, noted=at.noted)

    def has_news(self, cursor: Cursor) -> bool:
        """Return True if a reader at the cursor has not seen everything. Cheap: takes no lock."""
        answer = self.answer
        if self.missed:
            return True
        if answer is None or answer.message is None:
            return self.revision != cursor.revision
        read = (cursor.revision, cursor.seq, cursor.offset, cursor.noted)
        return (self.revision, answer.message.seq, answer.length, answer.noted) != read

    @property
    def running(self) -> bool:
        return self.waiting > 0 or self.answer is not None

    def overlay(self, messages: list[Message]) -> list[Message]:
        """Return these messages, each as it is in RAM if it is there.

        Messages that are committed but not yet known here are left out: readers get them with the notification.
        """
        with self._lock:
            return self._overlay(messages)

    def overlay_until(self, messages: list[Message], revision: int) -> tuple[list[Message], bool]:
        """Return the same, up to the first message changed after the revision, and whether there is such a message."""
        with self._lock:
            start = bisect_right(self._changes, (revision, 1 << 62))
            changed = {seq for _, seq in self._changes[start:]}
            found = self._overlay(messages)
            count = next((place for place, m in enumerate(found) if m.seq in changed), len(found))
            return found[:count], count < len(found)

    # --- called with the lock held --------------------------------------------------------------

    def _post(self, posted: Posted) -> None:
        if posted.withdrawn:
            self._withdraw(posted.withdrawn, posted.revision)
        self._set(posted.message, posted.revision)
        self._advance(posted.revision, posted.epoch, waiting=1)

    def _fill(self, loaded: Loaded) -> None:
        self.revision = loaded.revision
        self._floor = loaded.floor
        self._messages = [m for m, _ in loaded.messages]
        self._first = self._messages[0].seq if self._messages else 1
        self._withdrawn = sum(m.status is Status.WITHDRAWN for m in self._messages)
        self._changes = sorted((revision, m.seq) for m, revision in loaded.messages)

    def _is_open(self, message: Message) -> bool:
        if not self._first <= message.seq < self._first + len(self._messages):
            return False
        stored = self._get(message.seq)
        return stored.status is Status.STREAMING and stored.run_id == message.run_id

    def _overlay(self, messages: list[Message]) -> list[Message]:
        known = [m for m in messages if m.seq < self._first + len(self._messages)]
        return [self._with_live_text([self._get(m.seq)])[0] if m.seq >= self._first else m for m in known]

    def _newest(self, limit: int) -> Page:
        messages = self._with_live_text(self._messages[max(0, len(self._messages) - limit) :])
        more = bool(messages) and messages[0].seq > 1
        return Page(messages, self._cursor(messages).encode(self.log), self.running, more_before=more)

    def _partial_page(self, numbers: list[int], cursor: Cursor) -> Page:
        messages = self._with_live_text([self._get(seq) for seq in numbers])
        target = max(self._reached(cursor), 1)
        onward = Cursor(cursor.revision, cursor.seq, cursor.offset, numbers[-1], target, cursor.noted)
        return Page(messages, onward.encode(self.log), self.running, more_after=True)

    def _last_page(self, numbers: list[int], cursor: Cursor) -> Page:
        messages = self._with_live_text([self._get(seq) for seq in numbers])
        reached = self._cursor(messages, cursor)
        if (revision := self._reached(cursor)) != reached.revision:
            reached = replace(reached, revision=revision)
        # Changes that were made while a long list was read page by page follow after it.
        more = self.revision > reached.revision
        page = Page(messages, reached.encode(self.log), self.running, more_after=more)
        if self.answer is None and not cursor.target:
            self.nothing_new = Page((), page.cursor, self.running)
        return page

    def _reached(self, cursor: Cursor) -> int:
        """Return the revision up to which the reader of this page has seen all changes.

        It is the newest revision, unless a message of an earlier page has changed since.
        """
        if not cursor.target:
            return self.revision
        start = bisect_right(self._changes, (cursor.target, 1 << 62))
        return cursor.target if any(seq <= cursor.position for _, seq in self._changes[start:]) else self.revision

    def _with_live_text(self, messages: list[Message]) -> tuple[Message, ...]:
        answer = self.answer
        if answer is None or answer.message is None:
            return tuple(messages)
        seq = answer.message.seq
        return tuple([answer.so_far() if m.seq == seq else m for m in messages])

    def _cursor(self, shown: tuple[Message, ...], before: Cursor | None = None) -> Cursor:
        """Return the cursor of a reader that was shown these messages. `before`: its previous cursor."""
        answer = self.answer
        if answer is None or answer.message is None:
            return Cursor(self.revision)
        seq = answer.message.seq
        for message in reversed(shown):
            if message.seq == seq:
                return Cursor(self.revision, seq, len(message.content), noted=notes.length(message.notes))
        return replace(before, revision=self.revision, position=0, target=0) if before else Cursor(self.revision)

    def _get(self, seq: int) -> Message:
        return self._messages[seq - self._first]

    def _withdraw(self, seq: int, revision: int) -> None:
        self.answer = None
        if seq < self._first:
            self._floor = max(self._floor, revision)
        else:
            self._set(replace(self._get(seq), status=Status.WITHDRAWN, content="", notes=()), revision)

    def _set(self, message: Message, revision: int) -> None:
        index = message.seq - self._first
        if index < 0:  # not in RAM: readers that have not seen this change read it from the store
            self._floor = max(self._floor, revision)
            return
        if index > len(self._messages):  # the notification of an earlier message was lost
            self.gone = True
            return
        self._messages[index : index + 1] = [message]
        self._withdrawn += message.status is Status.WITHDRAWN
        self._changes.append((revision, message.seq))
        if len(self._messages) > MOST:
            self._trim()

    def _trim(self) -> None:
        """Remove the oldest messages; a reader that has not seen one of their changes reads it from the store."""
        first = min(self._messages[-KEPT].seq, self.needed)
        if first <= self._first:
            return
        del self._messages[: first - self._first]
        self._first = first
        self._floor = max([self._floor, *(revision for revision, seq in self._changes if seq < first)])
        if len(self._changes) > CHANGES:  # kept longer than messages, for readers in the middle of a long list
            self._floor = max(self._floor, self._changes[-CHANGES][0])
            del self._changes[:-CHANGES]
        self._withdrawn = sum(m.status is Status.WITHDRAWN for m in self._messages)

    def _advance(self, revision: int, epoch: int, *, waiting: int) -> None:
        self.missed = self.missed or (self._in_cluster and revision > self.revision + 1)
        self.revision = max(self.revision, revision)
        self.epoch = max(self.epoch, epoch)
        self.waiting = waiting
        self.nothing_new = None
        self.wake()
