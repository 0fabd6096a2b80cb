"""A model on this machine, in a GGUF file, run by xllamacpp in a process of its own.

A file is loaded once, for all talks, when it is first asked. It has a process of its own: loading holds up nobody, a
model that crashes ends nobody else, and its memory is given back. It answers one after the other; whoever waits is
told how many come before. Between two tokens, and between two pieces of a long question, it looks whether it is to
go on.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

from roost.brains.files import missing
from roost.brains.gguf.header import takes_tools
from roost.core.faults import Fault
from roost.core.usage import Usage
from roost.errors import BrainFailed
from roost.ports import Chunk, Host

PROGRAM = Path(__file__).with_name("process.py")
BATCH = 32
"""Tokens that are read between two looks whether to go on: more is a little quicker, and stops later."""
Delta = dict[str, Any]
"""A piece of a call of a tool, as the protocol has it."""
Heard = str | Chunk | list[Delta] | Usage


class Asked:
    """One answer that is asked for. `next` belongs to the loop of whoever asks; `tell` may be called anywhere."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.dropped = False
        self._loop = asyncio.get_running_loop()
        self._heard: asyncio.Queue[Heard | BaseException | None] = asyncio.Queue()

    def tell(self, heard: Heard | BaseException | None) -> None:
        """What it says, what it has cost, a failure, or None for the end."""
        try:
            self._loop.call_soon_threadsafe(self._heard.put_nowait, heard)
        except RuntimeError:
            return  # the loop has ended, and nobody waits any more

    async def next(self) -> Heard | None:
        heard = await self._heard.get()
        if isinstance(heard, BaseException):
            raise heard
        return heard


class Model:
    """One file, loaded when it is first asked."""

    def __init__(self, host: Host, file: Path, window: int) -> None:
        self.name = file.stem
        self.takes_tools = takes_tools(file)
        self._file = file
        self._window = window
        self._lock = host.lock()
        self._waiting: deque[Asked] = deque()
        self._now: Asked | None = None
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._pump = host.pump(f"roost-model-{file.stem}", self._answer_all)

    def ask(self, request: dict[str, Any]) -> Asked:
        asked = Asked(request)
        with self._lock:
            if self._closed:
                raise _closing()
            self._waiting.append(asked)
            self._tell_places(since=len(self._waiting) - 1)
        self._pump.ring()
        return asked

    def drop(self, asked: Asked) -> None:
        """Nobody waits for it any more: it is not begun, or ends at the next token."""
        with self._lock:
            asked.dropped = True
            if asked is self._now:
                self._send(b"stop")
            elif asked in self._waiting:
                at = self._waiting.index(asked)
                self._waiting.remove(asked)
                self._tell_places(since=at)

    def close(self) -> None:
        """End what is being said, and let go of thread, process and memory."""
        with self._lock:
            self._closed = True
            left = [*self._waiting, self._now]
            self._waiting.clear()
            if self._process is not None:
                self._process.kill()
        for asked in filter(None, left):
            asked.tell(_closing())
        self._pump.close()
        if self._process is not None:
            self._end()

    def _tell_places(self, since: int) -> None:
        ahead = 0 if self._now is None else 1
        for at, asked in enumerate(self._waiting):
            if at >= since and at + ahead > 0:
                asked.tell(_waiting(f"{at + ahead} before you …\n"))

    def _send(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            left = line + b"\n"
            try:
                while left:  # a signal may cut it short
                    left = left[os.write(self._process.stdin.fileno(), left) :]
            except OSError:
                return  # it has ended; whoever reads from it notices

    # --- on the model's thread -------------------------------------------------------------------

    def _answer_all(self) -> None:
        while (asked := self._next()) is not None:
            try:
                self._answer(asked)
            except Exception as error:  # told to who asked: the thread goes on
                asked.tell(error)
            finally:
                with self._lock:
                    self._now = None

    def _next(self) -> Asked | None:
        with self._lock:
            self._now = self._waiting.popleft() if self._waiting else None
            self._tell_places(since=0)
            return self._now

    def _answer(self, asked: Asked) -> None:
        if self._process is not None and self._process.poll() is not None:  # it has died while it had nothing to do
            self._end()
        if self._process is None:
            asked.tell(_waiting(f"Loading {self.name} …\n"))
            self._start()
        with self._lock:
            if asked.dropped:
                return
            self._send(json.dumps(asked.request).encode())
        while not (heard := self._read()).get("end"):
            if error := heard.get("error"):
                asked.tell(_failure(error))
            elif thought := heard.get("thought"):
                asked.tell(Chunk(thought, "thinking"))
            elif text := heard.get("text"):
                asked.tell(text)
            elif calls := heard.get("calls"):
                asked.tell(calls)
            elif used := heard.get("usage"):
                asked.tell(Usage(used[0], used[1], 0.0, self.name))
        asked.tell(None)

    def _start(self) -> None:
        command = [sys.executable, "-P", str(PROGRAM), str(self._file), *map(str, (threads(), self._window, BATCH))]
        with self._lock:
            if self._closed:
                raise _closing()
            # In a session of its own it is not told of a Ctrl-C, after which answers may still end.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        if "ready" not in self._read():
            self._end()
            raise missing(
                f"the model {str(self._file)!r} cannot be loaded",
                "its file is broken, of an unknown kind, or too large for this machine: use another one",
            )

    def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            code = self._end()
            raise BrainFailed(f"the process of the model {self.name!r} has ended ({code})", kind=Fault.PROVIDER)
        heard: dict[str, Any] = json.loads(line)
        return heard

    def _end(self) -> int:
        """What is left of a process; its exit code."""
        with self._lock:
            process, self._process = self._process, None
        assert process is not None
        with process:
            process.kill()
        return process.returncode


def _closing() -> BrainFailed:
    return BrainFailed("Roost is being closed")


def _failure(error: dict[str, Any]) -> BrainFailed:
    kind = Fault.TOO_LONG if error.get("type") == "exceed_context_size_error" else Fault.INTERNAL
    return BrainFailed(f"the model has failed: {error.get('message', error)}", kind=kind)


def _waiting(text: str) -> Chunk:
    return Chunk(text, "waiting")


def threads() -> int:
    """One less than there are processors for this program: Roost itself needs one too."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)
