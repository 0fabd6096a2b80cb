"""Local model in a GGUF file, run by xllamacpp in a subprocess.

A file is loaded once, for all talks, at the first request. In its own process loading blocks nothing, a crash ends
nothing else, and its RAM is released. Requests are answered one after the other; waiting users see their position.
Between two tokens, and between two batches of a long prompt, it checks whether to stop.
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

from roost.brains.gguf.header import takes_tools
from roost.brains.model_files import missing
from roost.core.failures.faults import Fault
from roost.core.limits.usage import Usage
from roost.errors import BrainFailed
from roost.ports import Chunk, Host

PROGRAM = Path(__file__).with_name("process.py")
BATCH = 32
"""Tokens of the prompt between two checks whether to stop: more is a little faster, and stops later."""
Delta = dict[str, Any]
"""Delta of a tool call in the protocol."""
Heard = str | Chunk | list[Delta] | Usage


class ModelRequest:
    """Request to the model. `next` belongs to the loop of the caller; `tell` may be called on any thread."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.dropped = False
        self._loop = asyncio.get_running_loop()
        self._heard: asyncio.Queue[Heard | BaseException | None] = asyncio.Queue()

    def send(self, piece: Heard | BaseException | None) -> None:
        """Pass on output, usage, a failure, or None for the end."""
        try:
            self._loop.call_soon_threadsafe(self._heard.put_nowait, piece)
        except RuntimeError:
            return  # the loop of the caller has ended

    async def next(self) -> Heard | None:
        heard = await self._heard.get()
        if isinstance(heard, BaseException):
            raise heard
        return heard


class GgufModel:
    """Model of one file, loaded at the first request."""

    def __init__(self, host: Host, file: Path, window: int) -> None:
        self.name = file.stem
        self.takes_tools = takes_tools(file)
        self._file = file
        self._window = window
        self._lock = host.lock()
        self._waiting: deque[ModelRequest] = deque()
        self._now: ModelRequest | None = None
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._pump = host.pump(f"roost-model-{file.stem}", self._answer_all)

    def ask(self, request: dict[str, Any]) -> ModelRequest:
        asked = ModelRequest(request)
        with self._lock:
            if self._closed:
                raise _closing()
            self._waiting.append(asked)
            self._tell_places(since=len(self._waiting) - 1)
        self._pump.ring()
        return asked

    def drop(self, asked: ModelRequest) -> None:
        """Cancel a request: it is not started, or ends at the next token."""
        with self._lock:
            asked.dropped = True
            if asked is self._now:
                self._send(b"stop")
            elif asked in self._waiting:
                at = self._waiting.index(asked)
                self._waiting.remove(asked)
                self._tell_places(since=at)

    def close(self) -> None:
        """Stop the current answer, and end the thread and the process."""
        with self._lock:
            self._closed = True
            left = [*self._waiting, self._now]
            self._waiting.clear()
            if self._process is not None:
                self._process.kill()
        for asked in filter(None, left):
            asked.send(_closing())
        self._pump.close()
        if self._process is not None:
            self._end()

    def _tell_places(self, since: int) -> None:
        ahead = 0 if self._now is None else 1
        for at, asked in enumerate(self._waiting):
            if at >= since and at + ahead > 0:
                asked.send(_waiting(f"{at + ahead} before you …\n"))

    def _send(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            left = line + b"\n"
            try:
                while left:  # a signal may interrupt it
                    left = left[os.write(self._process.stdin.fileno(), left) :]
            except OSError:
                return  # it has ended; the reader notices

    # --- on the model's thread -------------------------------------------------------------------

    def _answer_all(self) -> None:
        while (asked := self._next()) is not None:
            try:
                self._answer(asked)
            except Exception as error:  # reported to the caller: the thread continues
                asked.send(error)
            finally:
                with self._lock:
                    self._now = None

    def _next(self) -> ModelRequest | None:
        with self._lock:
            self._now = self._waiting.popleft() if self._waiting else None
            self._tell_places(since=0)
            return self._now

    def _answer(self, asked: ModelRequest) -> None:
        if self._process is not None and self._process.poll() is not None:  # it died while idle
            self._end()
        if self._process is None:
            asked.send(_waiting(f"Loading {self.name} …\n"))
            self._start()
        with self._lock:
            if asked.dropped:
                return
            self._send(json.dumps(asked.request).encode())
        while not (heard := self._read()).get("end"):
            if error := heard.get("error"):
                asked.send(_failure(error))
            elif thought := heard.get("thought"):
                asked.send(Chunk(thought, "thinking"))
            elif text := heard.get("text"):
                asked.send(text)
            elif calls := heard.get("calls"):
                asked.send(calls)
            elif used := heard.get("usage"):
                asked.send(Usage(used[0], used[1], 0.0, self.name))
        asked.send(None)

    def _start(self) -> None:
        command = [sys.executable, "-P", str(PROGRAM), str(self._file), *map(str, (threads(), self._window, BATCH))]
        with self._lock:
            if self._closed:
                raise _closing()
            # In its own session it does not receive Ctrl-C, so that running answers can finish.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
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
        """End the process; return its exit code."""
        with self._lock:
            process, self._process = self._process, None
        assert process is not None
        with process:
            process.kill()
        return process.returncode


def _closing() -> BrainFailed:
    return BrainFailed("Roost is closing")


def _failure(error: dict[str, Any]) -> BrainFailed:
    kind = Fault.TOO_LONG if error.get("type") == "exceed_context_size_error" else Fault.INTERNAL
    return BrainFailed(f"the model failed: {error.get('message', error)}", kind=kind)


def _waiting(text: str) -> Chunk:
    return Chunk(text, "waiting")


def threads() -> int:
    """Return the number of available processors less one, which Roost needs itself."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)
