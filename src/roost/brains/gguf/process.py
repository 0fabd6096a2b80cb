"""Process of a model: loads one GGUF file with xllamacpp and answers requests, one after the other.

It runs as a program, and imports nothing of Roost. It reads one JSON request per line from standard input, and writes
one line per piece of the answer and `{"end": true}` to standard output. Any input during an answer, including the end
of the input, stops it.
"""

from __future__ import annotations

import json
import os
import select
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from importlib import import_module
from typing import Any

INPUT = 0
CACHED = 128
"""Size of the prompt cache of other talks in MiB."""
SOCKETS = "/tmp"
"""TMPDIR may be too deep: the path of a socket has at most a hundred bytes."""


class Process:
    """Standard input and output of the process."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._come: deque[bytes] = deque()
        """Lines received after the current request."""

    def say(self, **what: Any) -> None:
        try:
            os.write(self._output, json.dumps(what).encode() + b"\n")
        except BrokenPipeError:  # the parent has ended
            os._exit(0)

    def questions(self) -> Iterator[dict[str, Any]]:
        """Yield requests. Reads without Python's buffer: pending input must be visible to `select`."""
        unread, come = b"", self._come
        while piece := os.read(INPUT, 65_536):
            *lines, unread = (unread + piece).split(b"\n")
            come += lines
            while come:
                if (line := come.popleft()) != b"stop":  # for an answer that has ended meanwhile
                    yield json.loads(line)

    def hear(self, said: dict[str, Any]) -> bool:
        """Write a piece of the answer; return True to stop it."""
        if self._come or select.select([INPUT], [], [], 0)[0]:
            return True
        if "error" in said:
            self.say(error=said["error"])
            return True
        for choice in said.get("choices", ()):
            if thought := choice["delta"].get("reasoning_content"):
                self.say(thought=thought)
            if text := choice["delta"].get("content"):
                self.say(text=text)
            if calls := choice["delta"].get("tool_calls"):
                self.say(calls=calls)
            if choice["finish_reason"] == "length":
                self.say(text=" …")
        if usage := said.get("usage"):
            self.say(usage=[usage["prompt_tokens"], usage["completion_tokens"]])
        return False


def load(file: str, threads: int, window: int, batch: int) -> Any:
    library = import_module("xllamacpp")
    settings = library.CommonParams()
    settings.model.path = file
    settings.n_ctx, settings.n_parallel, settings.cache_ram_mib = window, 1, CACHED
    settings.n_batch = settings.n_ubatch = batch
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.verbosity, settings.warmup, settings.n_threads_http = 0, False, 1
    # The library also serves HTTP to anyone on this machine: a socket without a name cannot be reached.
    with tempfile.TemporaryDirectory(prefix="roost-", dir=SOCKETS) as folder:
        settings.hostnames = [f"{folder}/model.sock"]
        return library.Server(settings)


def main() -> None:
    file, *numbers = sys.argv[1:]
    process = Process(os.dup(1))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the library's own output is not part of the answer
    try:
        model = load(file, *map(int, numbers))
    except Exception as error:
        process.say(failed=str(error))
        return
    process.say(ready=True)
    for question in process.questions():
        try:
            model.handle_chat_completions(question, process.hear)
        except Exception as error:  # the library may raise anything
            process.say(error={"message": str(error)})
        process.say(end=True)
    os._exit(0)  # nothing to clean up


if __name__ == "__main__":
    main()
