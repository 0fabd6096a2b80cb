"""Answer of a run: its text in RAM, and its writes to the store.

The text is in RAM at once. One task writes it to the store in steps: the first text, which gives the message its
number; then checkpoints at intervals; and, where the run is steered, the end of one message before the next begins.
Failed writes are retried. The settlement of the run writes the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial

from roost.core.failures.faults import Fault
from roost.core.talks import side_channels
from roost.core.talks.runs import Opened
from roost.core.talks.side_channels import Channel, Note
from roost.core.values import checks
from roost.errors import BrainFailed, Unavailable
from roost.ports import Loop
from roost.runtime.context import RuntimeContext
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.talks.live_text import LiveText
from roost.stores.sql.talks import answers

log = logging.getLogger("roost.answer")


class _Message(LiveText):
    """Text of one message, with the parts that are not stored yet."""

    __slots__ = ("is_open", "parts", "unsaved_notes", "unsaved_text")

    def __init__(self) -> None:
        super().__init__()
        self.unsaved_text: list[str] = []
        self.unsaved_notes: list[Note] = []
        self.is_open = False
        self.parts = 0

    def take(self) -> tuple[str, tuple[Note, ...]]:
        """Remove and return the text and notes that are not stored yet. Another thread may add more meanwhile."""
        count, note_count = len(self.unsaved_text), len(self.unsaved_notes)
        content, notes = "".join(self.unsaved_text[:count]), side_channels.joined(self.unsaved_notes[:note_count])
        del self.unsaved_text[:count]
        del self.unsaved_notes[:note_count]
        return content, notes

    def put_back(self, content: str, notes: tuple[Note, ...]) -> None:
        self.unsaved_text.insert(0, content)
        self.unsaved_notes[:0] = notes


class Answer:
    """Answer of one run. `say` and `split` may be called on a blocking brain's thread, the rest on the loop."""

    def __init__(self, context: RuntimeContext, loop: Loop, live: LiveTalk, run_id: str, epoch: int) -> None:
        self._context = context
        self._loop = loop
        self._live = live
        self._run_id = run_id
        self._epoch = epoch
        self._texts: deque[_Message] = deque([_Message()])
        self._begun = False
        self._woken_at = 0
        self._wake_event: asyncio.Event | None = None
        self._writer: asyncio.Task[None] | None = None
        self.first_chunk: float | None = None
        self.finished = False
        """True if no more text is accepted: the settlement writes the rest."""

    def say(self, chunk: str, channel: str = Channel.FINAL) -> None:
        if not chunk or self.finished:
            return
        text, cleaned = self._texts[-1], checks.clean(chunk)
        if channel == Channel.TOOLS:  # arguments and results of tools may be secret
            cleaned = self._context.redactor.clean_json(cleaned)
        if text.length + text.noted + len(cleaned) > self._context.limits.answer_chars:
            raise BrainFailed("the answer grew too long", kind=Fault.TOO_LONG)
        if channel == Channel.FINAL:
            text.append(cleaned)
            text.unsaved_text.append(cleaned)
        else:
            note = Note(channel, cleaned)
            text.note(note)
            text.unsaved_notes.append(note)
        if not self._begun:
            self._begun = True
            self.first_chunk = self._context.host.clock.now()
            # Started in the next iteration: the answer of a brain that ends at once is written by its settlement alone.
            self._loop.call(self._start)
        elif text.length + text.noted > self._woken_at + self._context.limits.checkpoint_chars:
            self._woken_at = text.length + text.noted
            self._loop.call(self._wake_writer)
        if text.message is not None:  # readers see it once it has its number, and are notified then
            self._live.grown()

    def split(self) -> None:
        """End the current message; text from now on belongs to a new one."""
        before = self._texts[-1]
        if before.length or before.noted:
            self._woken_at = 0
            after = _Message()
            if not before.length:  # it is withdrawn: no empty answer stays
                for note in before.notes():
                    after.note(note)
                    after.unsaved_notes.append(note)
            self._texts.append(after)
            self._loop.call(self._wake_writer)

    def said(self) -> str:
        """Return the text of the open message; text after a split is in a later message."""
        return self._texts[0].text()

    def noted(self) -> str:
        return side_channels.pack(self._texts[0].notes())

    async def finish(self) -> None:
        """Write split messages before the run is settled. Called after the brain has ended."""
        self.finished = True
        if self._writer is not None:
            self._wake_writer()
            await self._writer

    # --- the writing task ------------------------------------------------------------------------------

    def _start(self) -> None:
        if not self.finished or len(self._texts) > 1:
            self._wake_event = asyncio.Event()
            self._writer = asyncio.get_running_loop().create_task(
                self._write_all(), name=f"write answer {self._live.talk_id}"
            )

    def _wake_writer(self) -> None:
        if self._wake_event is not None:
            self._wake_event.set()

    async def _write_all(self) -> None:
        assert self._wake_event is not None
        while not self.finished or len(self._texts) > 1:
            try:
                if not await self._write(self._texts[0]):
                    return
            except Unavailable as error:
                log.warning(
                    "store unavailable; retrying to write an answer: %s", error, extra={"session": self._live.talk_id}
                )
                await asyncio.sleep(0.2 + 0.8 * self._context.host.jitter())
                continue
            if len(self._texts) == 1 and not self.finished:
                await self._pause(self._wake_event)

    async def _pause(self, wake_event: asyncio.Event) -> None:
        """Wait for the time between two checkpoints, or until there is much text or a message to end."""
        timer = asyncio.get_running_loop().call_later(self._context.limits.checkpoint_every, wake_event.set)
        try:
            await wake_event.wait()
        finally:
            timer.cancel()
        wake_event.clear()

    async def _write(self, text: _Message) -> bool:
        """Write the next part; return True if the run may still write."""
        if len(self._texts) > 1:
            return await self._end(text)
        if not text.is_open:
            return await self._open(text) if text.length or text.noted else True
        if text.unsaved_text or text.unsaved_notes:
            await self._checkpoint(text)
        return True

    async def _open(self, text: _Message) -> bool:
        """Give the message its number together with its first text, so that no crash leaves an empty message."""
        content, notes = text.take()
        try:
            opened = await self._context.store.write(
                answers.open_answer,
                self._live.talk_id,
                self._run_id,
                self._epoch,
                content,
                side_channels.pack(notes),
                key=self._live.talk_id,
                then=partial(self._opened, text),
            )
        except Unavailable:
            text.put_back(content, notes)
            raise
        return opened is not None

    def _opened(self, text: _Message, opened: Opened | None) -> None:
        if opened is not None:
            text.is_open = True
            self._live.opened(opened, text)

    async def _checkpoint(self, text: _Message) -> None:
        content, notes = text.take()
        try:
            await self._context.store.write(
                answers.checkpoint,
                self._live.talk_id,
                self._run_id,
                self._epoch,
                text.parts + 1,
                content,
                side_channels.pack(notes),
                key=self._live.talk_id,
            )
        except Unavailable:
            text.put_back(content, notes)
            raise
        text.parts += 1

    async def _end(self, text: _Message) -> bool:
        if not text.length and not text.is_open:  # no reader has seen it
            self._texts.popleft()
            return True
        settled = await self._context.store.write(
            answers.split_answer,
            self._live.talk_id,
            self._run_id,
            self._epoch,
            text.text(),
            side_channels.pack(text.notes()),
            key=self._live.talk_id,
            then=self._live.settled,
        )
        if not settled.superseded:
            self._texts.popleft()
        return not settled.superseded
