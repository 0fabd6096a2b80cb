"""`python -m bench.peers [--pairs N] [PEER …]`: run peers and Roost in turn; write their ratios to docs/figures.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from bench.peers import comparisons
from bench.peers.environments import ROOT, python_of

FIGURES = ROOT / "docs" / "figures.md"
BEGIN, END = "<!-- written by `make bench-peers` -->", "<!-- until here -->"
LIMIT = 300
"""Seconds that one run may take."""
HEADER = "| measurement | peer | Roost | Roost ÷ peer (range of pairs) | goal |\n| --- | --- | --- | --- | --- |"
Found = dict[str, list[float]]


def run(command: list[str], found: Found) -> None:
    """Run a program, and add the value of each line of JSON that it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT, env=environment, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: see its output above")
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            found[one["metric"]].append(one["value"])


def measure(peers: list[str], pairs: int) -> tuple[dict[str, Found], dict[str, Found]]:
    """Run each peer and then Roost's benches for it, again and again; return the values of both, by peer."""
    others: dict[str, Found] = {peer: defaultdict(list) for peer in peers}
    own: dict[str, Found] = {peer: defaultdict(list) for peer in peers}
    scripts = Path(__file__).parent / "scripts"
    pythons = {peer: str(python_of(peer)) for peer in peers}
    for number in range(pairs):
        for peer in peers:
            print(f"pair {number + 1} of {pairs}: {peer}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix="roost-peers-", dir=ROOT / ".cache") as folder:
                run([pythons[peer], str(scripts / comparisons.SCRIPTS[peer]), folder], others[peer])
            benches = dict.fromkeys(one.bench for one in comparisons.ALL if one.peer == peer)
            run([sys.executable, "-m", "bench", *benches], own[peer])
    return own, others


def table(own: dict[str, Found], others: dict[str, Found]) -> str:
    rows = [one.row(own[one.peer], others[one.peer]) for one in comparisons.ALL if one.peer in own]
    return "\n".join([HEADER, *rows])


def write(text: str) -> None:
    before, _, rest = FIGURES.read_text(encoding="utf-8").partition(BEGIN)
    FIGURES.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(comparisons.SCRIPTS)}; default: all")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each")
    asked = parser.parse_args()
    if unknown := set(asked.peers) - set(comparisons.SCRIPTS):
        parser.error(f"no peer is called {', '.join(sorted(unknown))}: there are {', '.join(comparisons.SCRIPTS)}")
    found = table(*measure(asked.peers or [*comparisons.SCRIPTS], asked.pairs))
    print(found)
    if not asked.peers:
        write(f"Medians of {asked.pairs} pairs of runs, peer and Roost in turn.\n\n{found}")


if __name__ == "__main__":
    main()
