"""Answer of a run: its text in memory, and its writes to the store.

The text is in RAM at once. One task writes it to the store, step by step: the first words, which give the message its
number; then checkpoints at intervals; and, where the run is steered, the end of one message before the next begins.
Failed writes are retried. The settlement of the run writes the last words.
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
from roost.runtime.talks.live_talk import LiveTalk, LiveText
from roost.stores.sql.talks import answers

log = logging.getLogger("roost.answer")


class _Message(LiveText):
    """A text that becomes a message of its own, with what of it is not in the store yet."""

    __slots__ = ("is_open", "parts", "unnoted", "unsaved")

    def __init__(self) -> None:
        super().__init__()
        self.unsaved: list[str] = []
        self.unnoted: list[Note] = []
        self.is_open = False
        self.parts = 0

    def take(self) -> tuple[str, tuple[Note, ...]]:
        """Return what is not in the store yet, while another thread may add to it: words and notes."""
        count, noted = len(self.unsaved), len(self.unnoted)
        content, said = "".join(self.unsaved[:count]), side_channels.joined(self.unnoted[:noted])
        del self.unsaved[:count]
        del self.unnoted[:noted]
        return content, said

    def put_back(self, content: str, said: tuple[Note, ...]) -> None:
        self.unsaved.insert(0, content)
        self.unnoted[:0] = said


class Answer:
    """Belongs to one run. `say` and `split` may be called on a blocking brain's thread, the rest on the loop."""

    def __init__(self, context: RuntimeContext, loop: Loop, live: LiveTalk, run_id: str, epoch: int) -> None:
        self._context = context
        self._loop = loop
        self._live = live
        self._run_id = run_id
        self._epoch = epoch
        self._texts: deque[_Message] = deque([_Message()])
        self._begun = False
        self._rung_at = 0
        self._bell: asyncio.Event | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.first_chunk: float | None = None
        self.finished = False
        """Nothing more is said, or nothing more of it counts: the settling writes what there is."""

    def say(self, chunk: str, channel: str = Channel.FINAL) -> None:
        if not chunk or self.finished:
            return
        text, said = self._texts[-1], checks.clean(chunk)
        if channel == Channel.TOOLS:  # what tools are given and give may be secret, and is no part of the answer
            said = self._context.redactor.clean_json(said)
        if text.length + text.noted + len(said) > self._context.limits.answer_chars:
            raise BrainFailed("the answer grew too long", kind=Fault.TOO_LONG)
        if channel == Channel.FINAL:
            text.append(said)
            text.unsaved.append(said)
        else:
            note = Note(channel, said)
            text.note(note)
            text.unnoted.append(note)
        if not self._begun:
            self._begun = True
            self.first_chunk = self._context.host.clock.now()
            # Not at once: of a brain that ends right away the answer is written in one go when it settles.
            self._loop.call(self._start)
        elif text.length + text.noted > self._rung_at + self._context.limits.checkpoint_chars:
            self._rung_at = text.length + text.noted
            self._loop.call(self._ring)
        if text.message is not None:  # readers see it once it has its number, and are notified then
            self._live.grown()

    def split(self) -> None:
        """Make what was said a message of its own; what is said from now on is opened after that."""
        before = self._texts[-1]
        if before.length or before.noted:
            self._rung_at = 0
            after = _Message()
            if not before.length:  # it is withdrawn: no empty answer stays
                for note in before.notes():
                    after.note(note)
                    after.unnoted.append(note)
            self._texts.append(after)
            self._loop.call(self._ring)

    def said(self) -> str:
        """Return the text of the message that is open: what came after it was steered is in another one, or in none."""
        return self._texts[0].text()

    def noted(self) -> str:
        return side_channels.pack(self._texts[0].notes())

    async def finish(self) -> None:
        """Once the brain is over: what was split is written before the run settles."""
        self.finished = True
        if self._keeper is not None:
            self._ring()
            await self._keeper

    # --- the keeper ------------------------------------------------------------------------------

    def _start(self) -> None:
        if not self.finished or len(self._texts) > 1:
            self._bell = asyncio.Event()
            self._keeper = asyncio.get_running_loop().create_task(self._keep(), name=f"keep {self._live.talk_id}")

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.set()

    async def _keep(self) -> None:
        assert self._bell is not None
        while not self.finished or len(self._texts) > 1:
            try:
                if not await self._write(self._texts[0]):
                    return
            except Unavailable as error:
                log.warning("an answer is kept later: %s", error, extra={"session": self._live.talk_id})
                await asyncio.sleep(0.2 + 0.8 * self._context.host.jitter())
                continue
            if len(self._texts) == 1 and not self.finished:
                await self._pause(self._bell)

    async def _pause(self, bell: asyncio.Event) -> None:
        """Until there is much to keep, or something else to do; else for the time between two checkpoints."""
        timer = asyncio.get_running_loop().call_later(self._context.limits.checkpoint_every, bell.set)
        try:
            await bell.wait()
        finally:
            timer.cancel()
        bell.clear()

    async def _write(self, text: _Message) -> bool:
        """Write the next part; return True if the run may still write."""
        if len(self._texts) > 1:
            return await self._end(text)
        if not text.is_open:
            return await self._open(text) if text.length or text.noted else True
        if text.unsaved or text.unnoted:
            await self._checkpoint(text)
        return True

    async def _open(self, text: _Message) -> bool:
        """Give the message its number, together with its first words: no crash leaves an empty one."""
        content, noted = text.take()
        try:
            opened = await self._context.store.write(
                answers.open_answer,
                self._live.talk_id,
                self._run_id,
                self._epoch,
                content,
                side_channels.pack(noted),
                key=self._live.talk_id,
                then=partial(self._opened, text),
            )
        except Unavailable:
            text.put_back(content, noted)
            raise
        return opened is not None

    def _opened(self, text: _Message, opened: Opened | None) -> None:
        if opened is not None:
            text.is_open = True
            self._live.opened(opened, text)

    async def _checkpoint(self, text: _Message) -> None:
        content, noted = text.take()
        try:
            await self._context.store.write(
                answers.checkpoint,
                self._live.talk_id,
                self._run_id,
                self._epoch,
                text.parts + 1,
                content,
                side_channels.pack(noted),
                key=self._live.talk_id,
            )
        except Unavailable:
            text.put_back(content, noted)
            raise
        text.parts += 1

    async def _end(self, text: _Message) -> bool:
        if not text.length and not text.is_open:  # nobody has seen it
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
