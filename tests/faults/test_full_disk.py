"""S7, T9: the disk is really full; acknowledged writes are kept, and work continues when there is space again."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import roost
from roost.stores.sql.talks import answers
from tests.brains_for_tests import Puppet, until
from tests.conftest import Open, eventually, everything, settled

LIMITS = roost.Limits(drain=0.5, stop_patience=0.3, checkpoint_every=0.02)


class Disk:
    """A small disk of its own; where none can be mounted, a limit that SQLite itself keeps."""

    def __init__(self, folder: Path, *, mount: bool = True) -> None:
        self.folder = folder
        self.mounted = False
        self.service: roost.AgentService | None = None
        command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
        if mount and shutil.which("mount") and os.geteuid() == 0:
            self.mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        if not self.mounted:
            self._limit(1)
            return
        with (self.folder / "ballast").open("ab", buffering=0) as ballast:
            for size in (65536, 4096, 512, 1):
                try:
                    while True:
                        ballast.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        if self.mounted:
            (self.folder / "ballast").unlink()
        else:
            self._limit(1_073_741_823)

    def _limit(self, pages: int) -> None:
        assert self.service is not None
        store = self.service.roost.context.store
        store.write(lambda tx: tx.read(f"PRAGMA max_page_count = {pages}"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    one = Disk(folder)
    yield one
    if one.mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def on(disk: Disk, service: Open, puppet: Puppet) -> tuple[roost.AgentService, str]:
    disk.service = service({"puppet": puppet}, name="disk/roost.db", limits=LIMITS)
    return disk.service, disk.service.create_talk_session("ann", profile="puppet", busy="steer")


def refused_while_full(service: roost.AgentService, talk: str) -> None:
    with pytest.raises(roost.Unavailable, match="the disk is full: free some space and try again"):
        for number in range(200):
            service.add_message("ann", talk, f"{number} " + "x" * 5_000, key=f"filler {number}")


def test_on_a_full_disk_messages_are_refused_clearly_and_taken_again_when_there_is_space(
    service: Open, disk: Disk
) -> None:
    roosted, talk = on(disk, service, Puppet())
    roosted.add_message("ann", talk, "before", key="before")
    settled(roosted, "ann", talk)
    disk.fill()
    refused_while_full(roosted, talk)
    assert everything(roosted, "ann", talk)[0].content == "before"
    disk.free()
    eventually(lambda: not roosted.get_messages("ann", talk).running)
    last = roosted.add_message("ann", talk, "after", key="after")
    whole = settled(roosted, "ann", talk)
    assert [m.seq for m in whole] == list(range(1, len(whole) + 1))
    assert [m.content for m in whole].count("after") == 1
    assert whole[-1].seq > last.seq
    assert whole[-1].status == "complete"


def test_an_answer_that_is_written_while_the_disk_is_full_is_whole_and_stored_when_there_is_space(
    service: Open, disk: Disk
) -> None:
    puppet, go_on, said = Puppet(), threading.Event(), threading.Event()
    roosted, talk = on(disk, service, puppet)

    def said_so() -> bool:
        said.set()
        return True

    puppet.play(talk, "part1 ", go_on.is_set, "y" * 50_000, said_so, " part3")
    roosted.add_message("ann", talk, "hello")
    eventually(lambda: everything(roosted, "ann", talk)[-1].content == "part1 ")
    disk.fill()
    go_on.set()
    assert said.wait(10)
    refused_while_full(roosted, talk)
    disk.free()
    eventually(lambda: not roosted.get_messages("ann", talk).running, seconds=15)
    expected = [("hello", "complete"), ("part1 " + "y" * 50_000 + " part3", "complete")]
    assert [(m.content, m.status) for m in everything(roosted, "ann", talk)][:2] == expected
    roosted.close()
    again = service({"puppet": puppet}, name="disk/roost.db", limits=LIMITS)
    assert [(m.content, m.status) for m in everything(again, "ann", talk)][:2] == expected


def test_steering_while_the_disk_is_full_loses_no_word(service: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    full, go_on = threading.Event(), threading.Event()

    async def steered(turn: roost.Turn) -> AsyncIterator[str]:
        yield "before "
        await until(lambda: bool(turn.steered()))
        yield "after "
        await until(go_on.is_set)
        yield "end"

    split = answers.split_answer

    def unreliable(*args: object) -> object:
        if not full.is_set():
            full.set()
            raise roost.Unavailable("the disk is full: free some space and try again")
        return split(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(answers, "split_answer", unreliable)
    roosted = service({"steered": steered}, limits=LIMITS)
    talk = roosted.create_talk_session("ann", profile="steered", busy="steer")
    roosted.add_message("ann", talk, "one")
    eventually(lambda: everything(roosted, "ann", talk)[-1].content == "before ")
    roosted.add_message("ann", talk, "two")
    assert full.wait(10)
    go_on.set()
    whole = settled(roosted, "ann", talk)
    assert {m.status for m in whole} == {"complete"}, [(m.seq, m.content, m.status) for m in whole]
    assert "".join(m.content for m in whole if m.sender == "agent") == "before after end"


def test_opening_on_a_full_disk_is_refused_with_a_sentence_and_works_when_there_is_space(
    service: Open, disk: Disk, tmp_path: Path
) -> None:
    if disk.mounted:  # else there is no disk to be full before anything is open
        disk.fill()
        with pytest.raises(roost.Unavailable, match="full"):
            roost.open(f"sqlite:///{tmp_path}/disk/roost.db", limits=LIMITS)
        disk.free()
    roosted = service(name="disk/roost.db", limits=LIMITS)
    assert roosted.list_sessions("ann") == []
