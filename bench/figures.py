"""A figure: how it is printed, and the goal it is held against."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Bench = Callable[[Path], Iterator["Figure"]]
BENCHES: dict[str, Bench] = {}
LONG: set[str] = set()
"""Benches that take minutes: they run only if they are named."""


@dataclass(frozen=True, slots=True)
class Figure:
    metric: str
    value: float
    unit: str
    n: int
    goal: float | None = None
    more_is_better: bool = False

    @property
    def reached(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal

    def line(self) -> str:
        value = float(f"{self.value:.4g}")
        return json.dumps({"peer": "roost", "metric": self.metric, "value": value, "unit": self.unit, "n": self.n})

    def row(self) -> str:
        goal = "" if self.goal is None else f"{'≥' if self.more_is_better else '≤'} {self.goal:g}"
        verdict = {True: "reached", False: "MISSED", None: ""}[self.reached]
        return f"{self.metric:<34} {self.value:>12.4g} {self.unit:<8} {goal:<10} {verdict}"


def bench(name: str, *, long: bool = False) -> Callable[[Bench], Bench]:
    def register(function: Bench) -> Bench:
        BENCHES[name] = function
        if long:
            LONG.add(name)
        return function

    return register


def percentile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(len(ordered) * q / 100) - 1))]


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
