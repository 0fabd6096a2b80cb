"""Comparison with peers: each has a script, an environment and a bench of Roost; the table says what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__ as benches
from bench.figures import BENCHES
from bench.peers import __main__ as peers
from bench.peers import comparisons, environments
from bench.peers.comparisons import AUTOGEN, COMMITS, Comparison

SCRIPTS = Path(peers.__file__).parent / "scripts"
RATE = Comparison("messages", "msg/s", AUTOGEN, "one_way", "one-way", "one_way_two_agents", 2.5)
TIME = Comparison("a turn", "ms", COMMITS, "commit", "long-talk", "turn_1000", 4.0, more_is_better=False)


@pytest.mark.parametrize("comparison", comparisons.ALL, ids=lambda one: f"{one.metric}-{one.peer}")
def test_a_comparison_names_figures_that_are_printed(comparison: Comparison) -> None:
    assert benches.MODULES
    assert comparison.bench in BENCHES
    script = SCRIPTS / comparisons.SCRIPTS[comparison.peer]
    assert f'"{comparison.peer_metric}"' in script.read_text()
    sources = "\n".join(path.read_text() for path in SCRIPTS.parents[1].glob("*.py"))
    assert f'"{comparison.metric}"' in sources


@pytest.mark.parametrize("peer", sorted(set(comparisons.SCRIPTS) - {COMMITS}))
def test_every_package_of_a_peer_is_locked_with_a_hash(peer: str) -> None:
    lock = (environments.LOCKS / f"{peer}.txt").read_text()
    packages = [line for line in lock.splitlines() if "==" in line and not line.startswith(("#", " "))]
    assert len(packages) > 1
    assert all(line.rstrip().endswith("\\") for line in packages)
    assert lock.count("--hash=sha256:") >= len(packages)


def test_a_row_has_the_ratio_of_medians_and_the_range_of_pairs() -> None:
    row = RATE.row({"one_way_two_agents": [300.0, 200.0, 260.0]}, {"one_way": [100.0, 100.0, 130.0]})
    assert row == ("| messages | AutoGen core, in memory: 100 msg/s | 260 msg/s | **2.6 ×** (2 – 3) | ≥ 2.5 × |")
    missed = TIME.row({"turn_1000": [1.0, 1.2]}, {"commit": [0.2, 0.2]})
    assert missed.endswith("**5.5 ×** (5 – 6) | ≤ 4 × (missed) |")


def test_the_table_replaces_the_one_before_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "figures.md"
    page.write_text(f"before\n\n{peers.BEGIN}\n\nold\n\n{peers.END}\n\nafter\n")
    monkeypatch.setattr(peers, "FIGURES", page)
    peers.write("new")
    assert page.read_text() == f"before\n\n{peers.BEGIN}\n\nnew\n\n{peers.END}\n\nafter\n"
    assert peers.BEGIN in (environments.ROOT / "docs" / "figures.md").read_text()


def test_an_unknown_peer_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["bench.peers", "nobody"])
    with pytest.raises(SystemExit):
        peers.main()
    assert "no peer is called nobody: there are autogen" in capsys.readouterr().err
