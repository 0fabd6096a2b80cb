"""Load of a cluster: clients that send through all nodes, timers, and readers that change nodes."""

from __future__ import annotations

import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count

from roost.client import RemoteService
from roost.core.talks.messages import Change
from roost.errors import RoostError
from tests.cluster.processes import Cluster, NodeProcess
from tests.conftest import eventually

NAMES = ("a", "b", "c")
AGENTS, TALKS, MEMBERS, TIMERS = 12, 6, 3, 60
CLIENTS, READERS = 8, 3


@dataclass
class Load:
    """Clients that send tasks, messages and mail, each with a key, and repeat what was not acknowledged elsewhere."""

    made: Cluster
    seed: int
    talks: list[str] = field(default_factory=list)
    """Answers in the second half of them are interrupted by later messages."""
    meeting: str = ""
    schedule: str = ""
    """Schedule with a tick each second."""
    sent: dict[str, str] = field(default_factory=dict)
    """Acknowledged tasks: their text, and their id."""
    mailed: dict[str, str] = field(default_factory=dict)
    """Acknowledged mail: its subject, and its id."""
    said: dict[str, set[str]] = field(default_factory=dict)
    """Acknowledged messages by talk, or by meeting."""
    stopping: threading.Event = field(default_factory=threading.Event)
    readers: list[Reader] = field(default_factory=list)

    @property
    def operations(self) -> int:
        """Return the number of operations that have succeeded."""
        return len(self.sent) + len(self.mailed) + sum(map(len, self.said.values()))

    def __str__(self) -> str:
        said = sum(len(texts) for name, texts in self.said.items() if name != self.meeting)
        met, moves = len(self.said.get(self.meeting, ())), sum(reader.moves for reader in self.readers)
        return f"{len(self.sent)} tasks, {len(self.mailed)} mails, {said} messages, {met} in a meeting, {moves} moves"

    def prepare(self, seconds: float) -> None:
        """Create agents, talks, a meeting, and timers for these seconds."""
        dice = random.Random(self.seed)
        with self.made.nodes["a"].connect() as service:
            eventually(self.made.is_whole, 60)
            service.agents.create_many("ann", [f"d{number}" for number in range(AGENTS)], profile="served")
            busy = ["queue"] * (TALKS // 2) + ["interrupt"] * (TALKS // 2)
            self.talks = [service.create_talk_session("ann", profile="served", busy=policy) for policy in busy]
            members = [f"agent:d{number}" for number in range(MEMBERS)]
            self.meeting = service.meetings.call("ann", "all hands", required=members)
            start = time.time() + 1.0
            for number in range(TIMERS):
                at = datetime.fromtimestamp(start + dice.uniform(0, seconds), UTC)
                service.schedules.create("ann", f"agent:d{number % AGENTS}", f"timer-{number}", at=at)
            ticks = service.schedules.create("ann", "agent:d0", "tick", every=1.0, overlap="queue_all", missed="all")
            self.schedule = ticks.schedule_id
            eventually(lambda: service.meetings.view("ann", self.meeting).phase == "running", 60)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send until the block ends; then everything that was sent is acknowledged or given up."""
        self.readers = [Reader(self.made, talk, f"{self.seed} {talk}", self.stopping) for talk in self.talks[:READERS]]
        self.readers[-1].talk = self.talks[-1]
        acts: list[Callable[[], None]] = [partial(self._run, number) for number in range(CLIENTS)]
        acts += [reader.run for reader in self.readers]
        threads = [threading.Thread(target=act, daemon=True) for act in acts]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
        for thread in threads:
            thread.join(60)
        assert [_stack(thread) for thread in threads if thread.is_alive()] == []
        print(self)

    def _run(self, client: int) -> None:
        dice = random.Random(f"{self.seed} {client}")
        for number in count(1):
            if self.stopping.is_set():
                return
            text = f"{client}-{number}"
            [act] = dice.choices((self._send, self._say, self._mail, self._speak), (4, 4, 2, 0.5))
            self._insist(partial(act, text, dice.choice(self.talks)), dice)

    def _insist(self, act: Callable[[RemoteService], None], dice: random.Random) -> None:
        while True:
            try:
                with self.made.nodes[dice.choice(NAMES)].connect(patience=1.0) as service:
                    act(service)
            except (RoostError, OSError):
                if self.stopping.wait(0.2):
                    return
            else:
                return

    def _send(self, text: str, _: str, service: RemoteService) -> None:
        self.sent[text] = service.tasks.send("ann", _agent(text), text, key=f"task {text}")

    def _mail(self, text: str, _: str, service: RemoteService) -> None:
        self.mailed[text] = service.mail.send("ann", _agent(text), text, "please", key=f"mail {text}")

    def _say(self, text: str, talk: str, service: RemoteService) -> None:
        service.add_message("ann", talk, text, key=f"message {text}")
        self.said.setdefault(talk, set()).add(text)

    def _speak(self, text: str, _: str, service: RemoteService) -> None:
        service.meetings.say("ann", self.meeting, text, key=f"said {text}")
        self.said.setdefault(self.meeting, set()).add(text)


@dataclass
class Reader:
    """Reader of a talk's stream that continues on another node after every 1 to 50 pieces."""

    made: Cluster
    talk: str
    seed: str
    stopping: threading.Event
    texts: dict[int, str] = field(default_factory=dict)
    """Text of each message, put together of pieces."""
    cursor: str | None = None
    moves: int = 0
    """Connections to another node than before."""

    def run(self) -> None:
        dice, last = random.Random(self.seed), ""
        while not self.stopping.is_set():
            name = dice.choice(NAMES)
            self.moves += name != last
            last = name
            try:
                self.read(self.made.nodes[name], dice.randint(1, 50))
            except (RoostError, OSError):
                self.stopping.wait(0.2)

    def read(self, node: NodeProcess, most: int | None = None) -> None:
        """Read up to `most` pieces while the load runs, or until no answer is being written."""
        with node.connect(patience=1.0) as service:
            for number, change in enumerate(service.stream_messages("ann", self.talk, after=self.cursor), start=1):
                self._add(change)
                if number == most or (most is not None and self.stopping.is_set()):
                    return

    def _add(self, change: Change) -> None:
        seq = change.message.seq
        self.texts[seq] = change.text if change.reset else self.texts.get(seq, "") + change.text
        self.cursor = change.cursor


def _stack(thread: threading.Thread) -> str:
    """Return what a thread is doing."""
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)[-6:])


def _agent(text: str) -> str:
    return f"agent:d{int(text.split('-')[1]) % AGENTS}"
