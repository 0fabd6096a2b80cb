"""T3, T11, T13: whatever is done to one talk, in whatever order, it stays consistent."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import roost
from tests.conftest import eventually, everything, settled

USER = "ann"
LIMITS = roost.Limits(drain=0.05, stop_patience=0.06, collect_quiet=0.01, collect_most=0.03, attempts=1_000)
LEGAL = {
    "streaming": {"streaming", "complete", "interrupted", "failed", "withdrawn"},
    "complete": {"complete"},
    "interrupted": {"interrupted"},
    "failed": {"failed"},
    "withdrawn": {"withdrawn"},
}
POLICIES = st.sampled_from([None, "interrupt", "queue", "reject", "rollback", "steer", "collect"])


class OneTalk(RuleBasedStateMachine):
    """Against a simple model: the messages that were acknowledged, in order, and what each reader was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="roost-machine-")
        self.hold = threading.Event()
        self.sent: list[tuple[int, str]] = []
        self.shown: list[dict[int, roost.Message]] = [{}, {}, {}]
        self.cursors: list[str | None] = [None, None, None]
        self.unanswered = False
        self.service = self._open()

    @initialize(busy=POLICIES.filter(bool))
    def start(self, busy: str) -> None:
        self.talk = self.service.create_talk_session(USER, profile="held", busy=busy)

    @rule(busy=POLICIES, text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
    def send(self, busy: str | None, text: str) -> None:
        rejects = (busy or self.service.get_session(USER, self.talk).busy) == "reject"
        idle = not self.service.get_messages(USER, self.talk).running
        try:
            message = self.service.add_message(USER, self.talk, text, busy=busy)
        except roost.Busy:
            assert rejects
            assert not idle
            return
        self.sent.append((message.seq, text))
        self.unanswered = True

    @rule()
    def let_it_answer(self) -> None:
        self.hold.clear()
        whole = settled(self.service, USER, self.talk)
        if self.unanswered:
            answers = [m for m in whole if m.sender == "agent" and m.status == "complete"]
            assert answers
            # One that has steered a run is answered before one that was to be collected and came earlier.
            last = f"#{self.sent[-1][0]}"
            assert any(last in m.content.split() for m in answers), "the last message was not answered"
            assert whole[-1] == answers[-1]
        self.unanswered = False

    @rule()
    def hold_it(self) -> None:
        self.hold.set()

    @precondition(lambda self: self.hold.is_set())
    @rule()
    def watch_it_begin(self) -> None:
        eventually(self._writes_or_rests)

    @rule()
    def stop(self) -> None:
        self.unanswered = False
        receipt = self.service.stop(USER, self.talk, wait=5)
        assert receipt.quiesced is not None
        assert receipt.requested <= (receipt.acknowledged or receipt.requested) <= receipt.quiesced
        assert not self.service.get_messages(USER, self.talk).running
        assert all(m.status != "streaming" for m in everything(self.service, USER, self.talk))

    @rule(who=st.integers(0, 2), limit=st.sampled_from([1, 2, 200]))
    def read(self, who: int, limit: int) -> None:
        # Without a cursor it is the newest ones that are given: a reader that wants all begins with all.
        page = self.service.get_messages(
            USER, self.talk, after=self.cursors[who], limit=limit if self.cursors[who] else 1_000
        )
        for message in page.messages:
            before = self.shown[who].get(message.seq)
            if before is not None:
                assert message.status in LEGAL[before.status]
                assert message.status == "withdrawn" or message.content.startswith(before.content)
            self.shown[who][message.seq] = message
        self.cursors[who] = page.cursor

    @rule(title=st.sampled_from(["one", "two"]))
    def rename(self, title: str) -> None:
        assert self.service.rename(USER, self.talk, title).title == title

    @rule()
    def reopen(self) -> None:
        self.service.close()
        self.service = self._open()

    @invariant()
    def it_is_consistent(self) -> None:
        if not hasattr(self, "talk"):
            return
        whole = everything(self.service, USER, self.talk)
        assert [m.seq for m in whole] == list(range(1, len(whole) + 1))
        assert [(m.seq, m.content) for m in whole if m.sender == "user"] == self.sent
        assert sum(m.status == "streaming" for m in whole) <= 1
        assert all(m.status in ("complete", "interrupted", "withdrawn", "streaming") for m in whole)
        assert all(m.content or m.status == "withdrawn" for m in whole), "an empty answer was left behind"

    def teardown(self) -> None:
        try:
            if hasattr(self, "talk"):
                self.let_it_answer()
                final = {m.seq: m for m in everything(self.service, USER, self.talk)}
                for who in range(3):
                    eventually(lambda who=who: self._read_all(who))  # type: ignore[misc]
                    assert self.shown[who] == final
        finally:
            self.service.close()
            shutil.rmtree(self.folder)

    def _writes_or_rests(self) -> bool:
        page = self.service.get_messages(USER, self.talk)
        return not page.running or any(m.status == "streaming" for m in page.messages)

    def _read_all(self, who: int) -> bool:
        self.read(who, 200)
        return not self.service.get_messages(USER, self.talk, after=self.cursors[who]).messages

    def _open(self) -> roost.AgentService:
        async def held(turn: roost.Turn) -> AsyncIterator[str]:
            yield f"#{turn.messages[-1].seq} "
            while self.hold.is_set():
                for message in turn.steered():
                    yield f"#{message.seq} "
                await asyncio.sleep(0.001)
            yield "done"

        return roost.open(f"sqlite:///{self.folder}/roost.db", brains={"held": held}, limits=LIMITS)


TestOneTalk = OneTalk.TestCase
TestOneTalk.settings = settings(stateful_step_count=12)
