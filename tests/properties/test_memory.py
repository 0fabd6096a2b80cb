"""T5, T11: talks are loaded and evicted; readers notice nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import roost
from roost.runtime import supervisor
from roost.runtime.talks import live_talk as live
from tests.brains_for_tests import Puppet
from tests.conftest import eventually, everything
from tests.properties.conftest import USER, Home
from tests.properties.readers import Reader

LITTLE = roost.Limits(drain=0.5, stop_patience=0.3, talks_in_ram=5)
TALKS, THREADS, ROUNDS = 50, 6, 8


@pytest.fixture(params=[(1_000, 2_000), (2, 3)], ids=["whole talks", "ends of talks"])
def forgetful(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A service that remembers five talks, and forgets the others all the time instead of now and then."""
    monkeypatch.setattr(live, "KEPT", request.param[0])
    monkeypatch.setattr(live, "MOST", request.param[1])
    monkeypatch.setattr(supervisor, "WATCH", 0.001)
    monkeypatch.setattr(supervisor, "SWEEP", 0.0)
    puppet = Puppet()
    with roost.open(f"sqlite:///{tmp_path}/roost.db", brains={"puppet": puppet}, limits=LITTLE) as service:
        yield Home(service, puppet)


def remembered(home: Home, talks: list[str]) -> int:
    return sum(home.service.roost.live_talks.known(talk) is not None for talk in talks)


def readers_of(home: Home, talks: list[str]) -> dict[str, Reader]:
    """Begun before a word is said, so that nothing may be missing."""
    readers = {talk: Reader(home, talk) for talk in talks}
    for reader in readers.values():
        assert reader.look().messages == ()
    return readers


def use(home: Home, readers: dict[str, Reader], thread: int) -> None:
    """Write to the talks in an order of one's own, and read each with a cursor that is kept all along."""
    luck, talks = random.Random(thread), list(readers)
    for turn in range(ROUNDS):
        for talk in luck.sample(talks, len(talks) // 2):
            home.say(talk, f"{thread}-{turn}")
            for other in (talk, luck.choice(talks)):
                readers[other].look()


@pytest.mark.parametrize("busy", ["interrupt", "queue"])
def test_cursors_kept_while_talks_are_forgotten_show_every_message_once(forgetful: Home, busy: str) -> None:
    talks = [forgetful.talk(busy) for _ in range(TALKS)]
    users = [readers_of(forgetful, talks) for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda thread: use(forgetful, users[thread], thread), range(THREADS)))
    for talk in talks:
        eventually(lambda talk=talk: not forgetful.read(talk).running)  # type: ignore[misc]
    eventually(lambda: remembered(forgetful, talks) <= 5)
    wholes = {talk: everything(forgetful.service, USER, talk) for talk in talks}
    for readers in users:
        for talk, reader in readers.items():
            reader.look_until_done()
            assert tuple(reader.shown.values()) == wholes[talk]
    sent = Counter(m.content for whole in wholes.values() for m in whole if m.sender == "user")
    assert sent == {f"{thread}-{turn}": TALKS // 2 for thread in range(THREADS) for turn in range(ROUNDS)}
    for talk, whole in wholes.items():
        asked = [m.content for m in whole if m.sender == "user"]
        assert len(asked) == len(set(asked))
        assert whole[-1].sender == "agent"
        assert not forgetful.read(talk).running


def test_a_talk_being_answered_or_watched_is_not_forgotten(forgetful: Home) -> None:
    talks, silent = [forgetful.talk() for _ in range(TALKS)], lambda: False
    kept = talks[:10]
    for talk in kept:
        forgetful.puppet.play(talk, "begun", silent)
        forgetful.say(talk, "hello")
    for talk in talks[10:]:
        forgetful.say(talk, "hello")
    eventually(lambda: remembered(forgetful, talks) == len(kept))
    for talk in kept:
        assert forgetful.read(talk).running
        forgetful.service.stop(USER, talk, wait=5)
    eventually(lambda: remembered(forgetful, talks) <= 5)
    for talk in talks:
        assert [m.sender for m in forgetful.read(talk).messages] == ["user", "agent"]
