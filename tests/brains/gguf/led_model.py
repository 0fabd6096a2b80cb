"""The process of a model whose library asks the test, over a socket, what to say. Run as a program."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roost.brains.gguf import process

PROGRAM = Path(__file__)
LOOK = 0.002
CUT = b"\0"


class Model:
    def handle_chat_completions(self, question: dict[str, Any], hear: Callable[[dict[str, Any]], bool]) -> None:
        with socket.socket(socket.AF_UNIX) as leader:
            leader.connect(os.environ["ROOST_LEADER"])
            leader.sendall(json.dumps(question, ensure_ascii=False).encode() + b"\n")
            leader.settimeout(LOOK)
            unread, over = b"", False
            while not over:
                try:
                    piece = leader.recv(65_536)
                    over = not piece
                except TimeoutError:
                    piece = b""
                *lines, unread = (unread + piece).split(b"\n")
                if hear({}) or any(hear(_said(json.loads(line))) for line in lines):
                    return
                if unread == CUT:
                    os._exit(3)


def _said(delta: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": None}]}


def gguf_file(template: str) -> bytes:
    """The beginning of a model's file, with the template by which a talk is put to it."""
    key = b"tokenizer.chat_template"
    value = struct.pack(f"<Q{len(key)}sIQ", len(key), key, 8, len(template)) + template.encode()
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + value


def load(file: str, threads: int, window: int, batch: int) -> Model:
    return Model()


if __name__ == "__main__":
    process.load = load
    process.main()
