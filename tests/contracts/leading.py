"""The test's side of `brains/gguf/led_model.py`: answers each question of that model as the test has scripted it."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roost.testing.provider import Act, Call, Cut, Wait
from tests.brains.gguf.led_model import CUT, LOOK


class Leader:
    """Listens, and answers each question with the next act; `ok` if there is none."""

    def __init__(self, path: Path) -> None:
        self.plays: list[tuple[Act, ...]] = []
        self.asked: list[str] = []
        self._over = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                asker, _ = self._listener.accept()
            except OSError:
                return
            acts = self.plays.pop(0) if self.plays else ("ok",)
            threading.Thread(target=self._lead, args=(asker, acts), daemon=True).start()

    def _lead(self, asker: socket.socket, acts: tuple[Act, ...]) -> None:
        with asker, asker.makefile("rb") as stream, suppress(OSError):  # one that was stopped hears no more
            self.asked.append(stream.readline().decode())
            calls = [act for act in acts if isinstance(act, Call)]
            for act in acts:
                asker.sendall(self._played(act, calls))

    def _played(self, act: Act, calls: list[Call]) -> bytes:
        if isinstance(act, Wait):
            while not act.until() and not self._over.wait(LOOK):
                pass
            return b""
        if isinstance(act, Call):
            return b"".join(json.dumps(piece).encode() + b"\n" for piece in _pieces(act, calls.index(act)))
        return CUT if isinstance(act, Cut) else json.dumps({"content": act}).encode() + b"\n"


def _pieces(call: Call, index: int) -> list[dict[str, Any]]:
    """A call as the protocol has it: its name first, then its arguments bit by bit."""
    given = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    begun = {"index": index, "id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": given[at : at + 5]}} for at in range(0, len(given), 5)]
    return [{"tool_calls": [piece]} for piece in (begun, *rest)]
