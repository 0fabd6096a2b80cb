"""B2: whatever is done to a talk, what the agent is shown and what people see are the same."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import Open, eventually, everything, settled

LIMITS = roost.Limits(drain=0.02, stop_patience=0.3, attempts=1_000)
WORDS = ("plain", "wait", "break", "then call quick", "then call slow", "call slow", "call quick")
SAY = st.tuples(st.sampled_from(WORDS), st.sampled_from(["interrupt", "queue", "rollback", "steer"]))
ACTS = st.one_of(SAY, SAY, st.sampled_from(["heard", "stop", "restart", "settled"]))
Act = tuple[str, str] | str


class Story:
    def __init__(self, folder: str) -> None:
        self.url = f"sqlite:///{folder}/roost.db"
        self.count = 0
        self.cut: set[int] = set()
        """Answers that a restart has cut off: they are given again."""
        self.service = self._open()
        self.talk = self.service.create_talk_session("ann", profile="helper")

    def _open(self) -> roost.AgentService:
        return roost.open(self.url, brains={"helper": Adk(models.agent())}, limits=LIMITS)

    def do(self, act: Act) -> None:
        if isinstance(act, tuple):
            self.count += 1
            text = f"m{self.count} {act[0]}" if act[0].startswith("then") else f"{act[0]} m{self.count}"
            self.service.add_message("ann", self.talk, text, busy=act[1])
        elif act == "heard":
            eventually(self._heard)
        elif act == "stop":
            self.service.stop("ann", self.talk, wait=10)
        elif act == "restart":
            before = {m.seq for m in self.seen() if m.status == "interrupted"}
            self.service.close()
            self.service = self._open()
            self.cut |= {m.seq for m in self.seen() if m.status == "interrupted"} - before
        elif self._will_end():
            settled(self.service, "ann", self.talk)

    def _heard(self) -> bool:
        """Something was said, or there is nothing to hear."""
        page = self.service.get_messages("ann", self.talk)
        return not page.running or any(m.status == "streaming" for m in page.messages)

    def _will_end(self) -> bool:
        return not any("wait" in m.content or "slow" in m.content for m in self.seen() if m.sender == "user")

    def seen(self) -> tuple[roost.Message, ...]:
        return everything(self.service, "ann", self.talk)

    def shown(self) -> list[str]:
        """Return what the agent is shown when it is asked for the last time."""
        self.service.stop("ann", self.talk, wait=10)
        models.seen.clear()
        self.service.add_message("ann", self.talk, "the end")
        settled(self.service, "ann", self.talk)
        return models.seen[-1][:-1]


@contextmanager
def story() -> Iterator[Story]:
    with tempfile.TemporaryDirectory(prefix="roost-adk-") as folder:
        one = Story(folder)
        try:
            yield one
        finally:
            one.service.close()


@settings(max_examples=12)
@given(st.lists(ACTS, min_size=1, max_size=8))
@example([("wait", "interrupt"), "heard", "restart", "heard", "stop", ("plain", "queue"), "settled"])
@example([("then call slow", "interrupt"), "heard", "stop", "restart", ("call quick", "interrupt"), "settled"])
@example([("call slow", "queue"), "heard", ("plain", "rollback"), "heard", ("break", "steer"), "heard"])
@example([("wait", "steer"), "heard", ("plain", "steer"), ("call slow", "interrupt"), "heard", "restart"])
def test_both_histories_agree(acts: list[Act]) -> None:
    with story() as one:
        for act in acts:
            one.do(act)
        shown = one.shown()
        check(shown, one.seen()[:-2], one.cut)


def check(shown: list[str], seen: tuple[roost.Message, ...], cut: set[int]) -> None:
    visible = [m for m in seen if m.status != "withdrawn"]
    asked = [text for line in shown if line.startswith("user: ") for text in line[6:].split(" | ")]
    results = [text for text in asked if text.startswith("result ")]
    said = [m.content for m in visible if m.sender == "user"]
    assert sorted(asked) == sorted([*said, *results]), "each message of the person's once"
    spoken = [text for line in shown if line.startswith("model: ") for text in line[7:].split(" | ")]
    calls = [text for text in spoken if text in ("call quick", "call slow")]
    assert len(calls) == len(results), "each call has its result"
    told = words(text for text in spoken if text not in calls and not text.startswith("[this answer"))
    answers = words(m.content for m in visible if m.sender == "agent")
    halves = words(m.content for m in visible if m.seq in cut)
    assert not told - answers, "nothing that people do not see, and nothing twice"
    assert not answers - told - halves, "everything that they see, but for what was run again"


def words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in text.split())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE diary SET content = '[{\"author\": 7'",
        "UPDATE diary SET content = '[{\"author\": [7]}]'",
        "UPDATE diary SET seqs = '[1'",
        "UPDATE diary_values SET value = '{'",
    ],
)
def test_a_row_of_the_diary_that_cannot_be_read_is_left_out(
    service: Open, tmp_path: Path, shown: list[list[str]], caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    one = service({"helper": Adk(models.agent(output_key="last"))})
    talk = one.create_talk_session("ann", profile="helper")
    one.add_message("ann", talk, "hello")
    settled(one, "ann", talk)
    one.close()
    with closing(sqlite3.connect(tmp_path / "roost.db")) as database, database:
        assert database.execute(damage).rowcount == 1
    one = service({"helper": Adk(models.agent(output_key="last"))})
    one.add_message("ann", talk, "again")
    assert settled(one, "ann", talk)[-1].content == "you said again"
    assert shown[-1] == ["user: hello", "model: you said hello", "user: again"]
    assert "unreadable" in caplog.text
