"""The process of a model, with a library that says as many pieces as it is asked for, at once. Run as a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roost.brains.gguf import process


class Model:
    def handle_chat_completions(self, question: dict[str, Any], hear: Callable[[dict[str, Any]], bool]) -> None:
        for _ in range(question["max_tokens"]):
            hear({"choices": [{"delta": {"content": "word "}, "finish_reason": None}]})


def load(file: str, threads: int, window: int, batch: int) -> Model:
    return Model()


if __name__ == "__main__":
    process.load = load
    process.main()
