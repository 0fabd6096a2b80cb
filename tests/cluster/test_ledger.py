"""The ledger of a cluster shows runs of one address at once, and effects that were repeated."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.cluster.checks import check_overlap
from tests.cluster.ledger import THAWED, Freeze, effects, has_just_thawed, overlap
from tests.cluster.processes import Cluster
from tests.transports.nats_server import NatsServer


def noted(folder: Path, *lines: str) -> Cluster:
    (folder / "ledger.txt").write_text("".join(f"{line}\n" for line in lines))
    return Cluster(folder, "", cast("NatsServer", None))


def test_runs_of_one_address_in_two_processes_at_once_are_found(tmp_path: Path) -> None:
    made = noted(
        tmp_path,
        "10.0 1 beat agent:d one",
        "10.5 2 beat agent:d two",
        "11.0 1 beat agent:d one",
        "11.0 2 beat agent:e other",
        "12.0 2 beat agent:d two",
    )
    assert overlap(made) == pytest.approx(0.5)
    with pytest.raises(AssertionError, match="at once"):
        check_overlap(made, [])


def test_a_run_of_a_frozen_process_counts_before_the_freeze_and_some_time_after_it(tmp_path: Path) -> None:
    late = 20.0 + THAWED + 0.3
    made = noted(
        tmp_path,
        "10.0 1 beat talk_1 one",
        "15.0 2 beat talk_1 two",
        f"{late} 1 beat talk_1 one",
        "25.0 2 beat talk_1 two",
    )
    assert overlap(made, [Freeze(1, 11.0, 20.0)]) == pytest.approx(0.3)
    assert overlap(made, [Freeze(1, 11.0, 20.0 + 0.3)]) == 0.0
    assert overlap(made, [Freeze(3, 11.0, 20.0)]) > 4.0


def test_one_process_runs_an_agent_twice_at_once_but_never_a_talk(tmp_path: Path) -> None:
    beats = ["10.0 1 beat {} one", "11.0 1 beat {} two", "12.0 1 beat {} one", "13.0 1 beat {} two"]
    assert overlap(noted(tmp_path, *(line.format("agent:d") for line in beats))) == 0.0
    assert overlap(noted(tmp_path, *(line.format("talk_1") for line in beats))) == pytest.approx(1.0)


def test_effects_are_known_by_text_with_their_keys(tmp_path: Path) -> None:
    made = noted(tmp_path, "10.0 1 effect a key", "10.1 1 recorded a", "15.0 2 effect a key", "15.1 2 recorded a")
    found = effects(made)["a"]
    assert (found.times, found.recorded) == ([(10.0, 1, "key"), (15.0, 2, "key")], 10.1)
    assert has_just_thawed(2, 15.0, [Freeze(2, 11.0, 14.9)])
    assert not has_just_thawed(1, 15.0, [Freeze(2, 11.0, 14.9)])
