"""One hot talk: a thousand writers at once, in every busy policy; each message is kept once, in one order."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import roost
from tests.conftest import QUICK, everything, settled

POLICIES = ("interrupt", "queue", "rollback", "steer", "collect")


def limits(writers: int) -> roost.Limits:
    return roost.Limits(drain=0.5, stop_patience=0.3, waiting_per_talk=2 * writers, collect_quiet=0.05)


@pytest.mark.parametrize("writers", [200, pytest.param(1_000, marks=pytest.mark.soak)])
def test_many_writers_of_one_talk_lose_and_double_nothing(tmp_path: Path, writers: int) -> None:
    with roost.open(f"sqlite:///{tmp_path / 'roost.db'}", limits=limits(writers)) as service:
        talk = service.create_talk_session("ann", profile="echo")
        start = threading.Barrier(20)

        def write(share: int) -> dict[str, int]:
            start.wait(30)
            kept = {}
            for number in range(share, writers, 20):
                policy = POLICIES[number % len(POLICIES)]
                message = service.add_message("ann", talk, f"message {number}", key=f"k{number}", busy=policy)
                again = service.add_message("ann", talk, f"message {number}", key=f"k{number}", busy=policy)
                assert again.seq == message.seq
                kept[message.content] = message.seq
            return kept

        with ThreadPoolExecutor(20) as pool:
            acknowledged = {text: seq for share in pool.map(write, range(20)) for text, seq in share.items()}
        settled(service, "ann", talk)
        messages = everything(service, "ann", talk)
        assert not service.get_session("ann", talk).running
    assert len(acknowledged) == writers
    assert [m.seq for m in messages] == list(range(1, len(messages) + 1))
    said = {m.content: m.seq for m in messages if m.sender == "user"}
    assert said == acknowledged
    assert Counter(m.sender for m in messages)["user"] == writers
    assert all(m.status != "streaming" for m in messages)
    assert [m for m in messages if m.status == "complete" and not m.content] == []
    assert messages[-1].sender == "agent"
    assert messages[-1].status == "complete"


def test_a_full_lane_refuses_with_a_limit_and_keeps_what_it_has_accepted(tmp_path: Path) -> None:
    with roost.open(f"sqlite:///{tmp_path / 'roost.db'}", limits=roost.Limits(waiting_per_talk=5)) as service:
        talk = service.create_talk_session("ann", profile="echo", busy="collect")

        def write(number: int) -> str | None:
            try:
                return service.add_message("ann", talk, f"message {number}").content
            except roost.LimitReached:
                return None

        with ThreadPoolExecutor(20) as pool:
            kept = {text for text in pool.map(write, range(200)) if text is not None}
        settled(service, "ann", talk)
        found = [m.content for m in everything(service, "ann", talk) if m.sender == "user"]
    assert 5 <= len(kept) < 200
    assert sorted(found) == sorted(kept)
    assert QUICK.waiting_per_talk > 5
