"""An answer: what a run says, from its first word to the last, and how it gets into the store.

The text is in memory at once. It gets its number with its first words, is kept by checkpoints while it
grows, and is written whole when the run settles. Where the run is steered, it ends and another begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial

from roost.core import checks
from roost.core.runs import Opened
from roost.errors import LimitReached, Unavailable
from roost.ports import Loop
from roost.runtime.live import LiveTalk, LiveText
from roost.runtime.shop import Shop

log = logging.getLogger("roost.answer")


class Answer:
    """Belongs to one run. `say` and `split` may be called on a blocking brain's thread, the rest on the loop."""

    def __init__(self, shop: Shop, loop: Loop, live: LiveTalk, run_id: str, epoch: int) -> None:
        self._shop = shop
        self._loop = loop
        self._live = live
        self._run_id = run_id
        self._epoch = epoch
        self._aloop = asyncio.get_running_loop()
        self._text = LiveText()
        self._unsaved: list[str] = []
        self._saved_length = 0
        self._parts = 0
        self._asked_open = self._is_open = False
        self._timer: asyncio.TimerHandle | None = None
        self._unsplit: deque[LiveText] = deque()
        self._splitting: asyncio.Task[None] | None = None
        self.first_chunk: float | None = None
        self.finished = False
        """Nothing more is said, or nothing more of it counts: the settling writes what there is."""

    def say(self, chunk: str) -> None:
        if not chunk or self.finished:
            return
        text = checks.clean(chunk)
        self._text.append(text)
        self._unsaved.append(text)
        if not self._asked_open:
            self._asked_open = True
            self.first_chunk = self.first_chunk or self._shop.host.clock.now()
            # Not at once: of a brain that ends right away the answer is written in one go when it settles.
            self._loop.call(self._open, self._text)
        elif self._text.length > self._saved_length + self._shop.limits.checkpoint_chars:
            self._saved_length = self._text.length
            self._loop.call(self._checkpoint)
        self._live.grown()
        if self._text.length > self._shop.limits.answer_chars:
            raise LimitReached("the answer grew too long")

    def said(self) -> str:
        """The text of the message that is open: what came after it was steered is in another one, or in none."""
        return (self._unsplit[0] if self._unsplit else self._text).text()

    async def finish(self) -> None:
        """Once the brain is over: what was split is written before the run settles."""
        self.finished = True
        if self._timer is not None:
            self._timer.cancel()
        if self._splitting is not None:
            await self._splitting

    # --- into the store --------------------------------------------------------------------------

    def _open(self, text: LiveText) -> None:
        """Give the answer its number, together with its first words: no crash leaves an empty one."""
        if self._splitting is not None and not self._splitting.done():
            self._splitting.add_done_callback(lambda _: self._open(text))
            return
        if self.finished or self._unsplit or text is not self._text:
            return
        self._is_open = True
        self._shop.store.write(
            self._shop.statements.runs.open_answer, self._live.talk_id, self._run_id, self._epoch,
            _taken(self._unsaved), key=self._live.talk_id, then=partial(self._opened, text),
        )  # fmt: skip
        self._tick()

    def _opened(self, text: LiveText, opened: Opened | None) -> None:
        if opened is not None:
            self._live.opened(opened, text)

    def _tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._aloop.call_later(self._shop.limits.checkpoint_every, self._tick)
        self._checkpoint()

    def _checkpoint(self) -> None:
        if not self._unsaved or not self._is_open or self.finished:
            return
        self._parts += 1
        self._shop.store.write(
            self._shop.statements.runs.checkpoint, self._live.talk_id, self._run_id, self._epoch, self._parts,
            _taken(self._unsaved), key=self._live.talk_id,
        )  # fmt: skip

    # --- steered ---------------------------------------------------------------------------------

    def split(self) -> None:
        """Make what was said a message of its own; what is said from now on is opened after that."""
        if self._text.length:
            self._unsplit.append(self._text)
            self._text = LiveText()
            self._unsaved = []
            self._parts = self._saved_length = 0
            self._asked_open = self._is_open = False
            self._loop.call(self._start_splitting)

    def _start_splitting(self) -> None:
        if self._splitting is None or self._splitting.done():
            self._splitting = self._aloop.create_task(self._write_splits(), name=f"split {self._live.talk_id}")

    async def _write_splits(self) -> None:
        shop, talk_id = self._shop, self._live.talk_id
        while self._unsplit:
            try:
                settled = await shop.store.write(
                    shop.statements.runs.split_answer, talk_id, self._run_id, self._epoch, self._unsplit[0].text(),
                    key=talk_id, then=self._live.settled,
                )  # fmt: skip
            except Unavailable as error:
                log.warning("a steered answer is kept later: %s", error, extra={"session": talk_id})
                await asyncio.sleep(0.2 + 0.8 * shop.host.jitter())
                continue
            if settled.superseded:
                return
            self._unsplit.popleft()


def _taken(unsaved: list[str]) -> str:
    """Take what is there, while another thread may add to it."""
    count = len(unsaved)
    content = "".join(unsaved[:count])
    del unsaved[:count]
    return content
