"""`python -m bench [NAME …]`: JSON lines on standard output, a table with the goals on standard error."""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from pathlib import Path

from bench import (
    adk,
    agents,
    cluster,
    cluster_cuts,
    cluster_failures,
    completions,
    crowd,
    live,
    local,
    long_lives,
    meetings,
    messages,
    models,
    pages,
    postgres,
    protocols,
    shared_talks,
    startup,
    streams,
    talks,
)
from bench.figures import BENCHES, LONG, Figure, progress

MODULES = (
    talks,
    agents,
    crowd,
    messages,
    postgres,
    cluster,
    cluster_cuts,
    cluster_failures,
    meetings,
    protocols,
    streams,
    shared_talks,
    completions,
    startup,
    pages,
    live,
    long_lives,
    local,
    models,
    adk,
)


def calibration() -> Figure:
    """A fixed loop of pure CPU: compare it between runs and machines."""
    start = time.perf_counter()
    sum(n * n for n in range(2_000_000))
    return Figure("calibration_loop", time.perf_counter() - start, "s", 1)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"no bench is called {', '.join(unknown)}: there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    figures = [calibration()]
    print(figures[0].line(), flush=True)
    for name in names or [name for name in BENCHES if name not in LONG]:
        progress(f"measuring {name} …")
        gc.collect()  # what one has left behind is not the next one's
        with tempfile.TemporaryDirectory(
            prefix="roost-bench-", dir=".cache" if Path(".cache").is_dir() else None
        ) as folder:
            for figure in BENCHES[name](Path(folder)):
                progress("")
                print(figure.line(), flush=True)
                figures.append(figure)
    print("\n".join(["", *(figure.row() for figure in figures)]), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
