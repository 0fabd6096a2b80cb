"""A model on this machine: what Roost adds to the bare library, a turn and a piece; and how fast the real one is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import roost
from bench.figures import Figure, bench, percentile, progress
from roost.brains.gguf import brain, model, process

MODEL = Path(".cache/models/smollm2.gguf")
QUESTION = "Write a long story about the sea."
TOKENS = 100
PIECES = 5_000
TURNS = 200


@bench("gguf")
def measure(folder: Path) -> Iterator[Figure]:
    os.environ["ROOST_DATA"] = str(folder)
    (folder / "models").mkdir()
    (folder / "models" / "instant.gguf").write_bytes(b"GGUF")
    real = model.PROGRAM
    model.PROGRAM = Path(__file__).with_name("instant_model.py")
    yield from _added(folder)
    model.PROGRAM = real
    if MODEL.exists():
        (folder / "models" / "smollm2.gguf").symlink_to(MODEL.absolute())
        yield from _beside_the_library(folder)
    else:
        progress("no model: `make model` fetches it\n")


def _opened(folder: Path, name: str, most: int) -> roost.AgentService:
    (folder / "roost.toml").write_text(
        f'[profiles.local]\nbrain = "gguf"\nmodel = "{name}"\nmax_tokens = {most}\ntemperature = 0.0\n'
    )
    return roost.open(f"sqlite:///{folder / name}-{most}.db", config=folder / "roost.toml")


def _turn(service: roost.AgentService) -> tuple[float, float, int]:
    """Seconds until the first piece and until the end, and how many pieces a reader has seen."""
    talk = service.create_talk_session("ann", profile="local")
    start = time.perf_counter()
    service.add_message("ann", talk, QUESTION)
    first, pieces = 0.0, 0
    for change in service.stream_messages("ann", talk):
        if change.message.sender == "agent" and change.text:
            first = first or time.perf_counter() - start
            pieces += 1
    return first, time.perf_counter() - start, pieces


def _added(folder: Path) -> Iterator[Figure]:
    with _opened(folder, "instant", 1) as service:
        _turn(service)
        turns = [_turn(service)[1] for _ in range(TURNS)]
        yield Figure("gguf_turn_added_p50", median(turns) * 1e3, "ms", TURNS)
        yield Figure("gguf_turn_added_p99", percentile(turns, 99) * 1e3, "ms", TURNS)
    with _opened(folder, "instant", PIECES) as service:
        _turn(service)
        yield Figure("gguf_piece_added", min(_turn(service)[1] for _ in range(3)) / PIECES * 1e3, "ms", PIECES)


def _beside_the_library(folder: Path) -> Iterator[Figure]:
    start = time.perf_counter()
    library = process.load(str(MODEL), model.threads(), brain.WINDOW, model.BATCH)
    yield Figure("gguf_bare_load", time.perf_counter() - start, "s", 1)
    messages = [{"role": "user", "content": QUESTION}]
    request = {**brain.SAMPLING, "temperature": 0.0, "max_tokens": TOKENS, "stream": True, "messages": messages}

    def bare() -> float:
        start = time.perf_counter()
        library.handle_chat_completions(request, lambda said: False)
        return time.perf_counter() - start

    with _opened(folder, "smollm2", TOKENS) as service:
        first, _, _ = _turn(service)
        yield Figure("gguf_first_piece_with_loading", first, "s", 1)
        bare()
        pairs = [(bare(), _turn(service)[1]) for _ in range(5)]  # in turn: the machine changes its speed
        yield Figure("gguf_bare_tokens_per_second", TOKENS / median(alone for alone, _ in pairs), "tokens/s", TOKENS)
        yield Figure("gguf_tokens_per_second", TOKENS / median(ours for _, ours in pairs), "tokens/s", TOKENS)
