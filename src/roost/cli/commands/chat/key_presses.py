"""Ctrl-C in `roost chat`."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress
from typing import Self

UNSEEN = 0.1
"""Seconds after which a Ctrl-C that Python has not handled is sent again."""


class KeyPresses:
    """Counter of Ctrl-C, so that one raised where Python swallows it, as in garbage collection, is not lost.

    Python also misses one that arrives just before `input` waits for a key. Its byte in the wakeup pipe then remains
    unread, and a thread sends the signal again.
    """

    def __init__(self) -> None:
        self._count = self._heeded = 0
        self._is_over = False

    def __enter__(self) -> Self:
        self._pending, self._wakeup = os.pipe()
        for end in (self._pending, self._wakeup):
            os.set_blocking(end, False)
        self._before = signal.signal(signal.SIGINT, self._press)
        signal.set_wakeup_fd(self._wakeup)
        self._thread = threading.Thread(target=self._repeat, name="roost-presses", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, self._before)
        self._is_over = True
        os.close(self._wakeup)
        self._thread.join(1.0)
        os.close(self._pending)

    def heed(self) -> None:
        self._heeded = self._count

    def check(self) -> None:
        if self._count > self._heeded:
            raise KeyboardInterrupt

    def _press(self, *_: object) -> None:
        with suppress(BlockingIOError):
            os.read(self._pending, 1024)
        self._count += 1
        raise KeyboardInterrupt

    def _repeat(self) -> None:
        main = threading.main_thread().ident
        while not self._is_over:
            select.select([self._pending], [], [])
            time.sleep(UNSEEN)
            with suppress(BlockingIOError):  # it was handled
                if signal.SIGINT in os.read(self._pending, 1024) and main is not None:
                    signal.pthread_kill(main, signal.SIGINT)
