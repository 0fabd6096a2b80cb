"""Process of a model with a scripted library in place of xllamacpp. Run as a program."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roost.brains.gguf import process

Hear = Callable[[dict[str, Any]], bool]
WINDOW = 1_000
"""Characters of all messages that fit."""


class Model:
    """Says what it was asked for, as JSON; or what the last words of the question ask for."""

    def handle_chat_completions(self, question: dict[str, Any], hear: Hear) -> None:
        size = sum(len(message["content"]) for message in question["messages"])
        if size > WINDOW:
            hear({"error": {"type": "exceed_context_size_error", "n_prompt_tokens": size, "n_ctx": WINDOW}})
            return
        match question["messages"][-1]["content"].split()[-1]:
            case "die":
                hear(_piece("I am "))
                os._exit(3)
            case "count":
                while not hear(_piece("1 ")):
                    threading.Event().wait(0.001)
            case "fail":
                raise ValueError("it was asked to")
            case "think":
                hear({"choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": None}]})
                hear(_piece("done"))
            case _:
                hear(_piece(json.dumps(question)))


def _piece(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": None}]}


def load(file: str, threads: int, window: int, batch: int) -> Model:
    """As long as there is a file `held` beside the model, it takes."""
    while Path(file).with_name("held").exists():
        threading.Event().wait(0.001)
    return Model()


if __name__ == "__main__":
    process.load = load
    process.main()
