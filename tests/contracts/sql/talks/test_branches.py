"""Branches in the store, on every store: what is copied, and what is deleted with what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roost.core.brain_data.brain_context import ContextEntry, ContextKey, ContextWrite, Scope
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.talks.branches import BranchAction, NewBranch
from roost.errors import Conflict, LimitReached, NotFound
from roost.ports import Tx
from roost.stores.sql import settlement
from roost.stores.sql.brain_data import artifacts, brain_context
from roost.stores.sql.tables import quotas
from roost.stores.sql.talks import answers, branches, messages, runs, talks
from roost.stores.sql.talks.branches import Branched
from tests.contracts.conftest import Driven

TALK = "talk_0001"


@pytest.fixture
def talk(store: Driven) -> str:
    """A talk with three answered messages; each turn sets a value of its state and one of its context."""
    store.write(talks.create, TALK, "ann", "echo", "queue", "", "{}", 10)
    for number in (1, 2, 3):
        say(store, number)
    return TALK


def say(store: Driven, number: int, talk: str = TALK) -> None:
    sent = (f"question {number}", None, None, "t", f"env_{talk}_{number}", 1.0, 100)
    posted = store.write(messages.post, "ann", talk, *sent)
    run_id, seq = f"run_{talk}_{number}", posted.message.seq
    before, after = ({"count": n, f"only {n}": True} if n else {} for n in (number - 1, number))
    context = ContextWrite(
        ContextKey(talk, "", "ann"),
        "app",
        ContextEntry(run_id, f'["{number}"]', (seq,)),
        {Scope.OWN: {"mood": f"{number}"}, Scope.USER: {"name": '"ann"'}},
    )
    store.write(artifacts.save, f"artifact_{number}", talk, "", "file", f"version {number}", "{}", now(store))
    closing = Closing(
        run_id,
        posted.envelope,
        posted.epoch,
        Verdict.DONE,
        f"answer {number}",
        1.0,
        2.0,
        state=json.dumps(after),
        state_before=json.dumps(before),
        brain_context=context,
        answer=AnswerEnd(),
    )
    store.write(settlement.settle, (closing,))


def now(store: Driven) -> float:
    return float(store.read(_now))


def _now(tx: Tx) -> Any:
    row = tx.one("SELECT roost_now()")
    assert row is not None
    return row[0]


def made(
    store: Driven, action: BranchAction, seq: int | None = None, *, of: str = TALK, to: str = "talk_0002", **more: Any
) -> Branched:
    new = NewBranch(to, action, seq, f"env_{to}", **more)
    branched = store.write(branches.create, "ann", of, new, 10, 1.0)
    assert isinstance(branched, Branched)
    return branched


def texts(store: Driven, talk: str) -> list[str]:
    return [m.content for m in store.read(messages.before, "ann", talk, 10**9, 100)]


def kept(store: Driven, talk: str) -> tuple[Any, list[str], dict[str, str], int]:
    """The state of a talk, the runs in its context, its own values, and the versions of its artifact."""
    state = store.read(talks.load, "ann", talk, 10).state
    entries, values = store.read(brain_context.read, ContextKey(talk, "", "ann"), "app", 100)
    versions = store.read(artifacts.versions, talk, "", "file")
    found = json.loads(state) if state else None
    return found, [entry.content for entry in entries], values[Scope.OWN], len(versions)


def test_a_fork_has_what_there_was_at_its_last_message(store: Driven, talk: str) -> None:
    made(store, BranchAction.FORK, 4)
    assert texts(store, "talk_0002") == ["question 1", "answer 1", "question 2", "answer 2"]
    state, entries, values, versions = kept(store, "talk_0002")
    assert state == {"count": 2, "only 2": True}
    assert (entries, values, versions) == (['["1"]', '["2"]'], {"mood": "2"}, 2)


def test_a_fork_of_a_fork_has_the_values_of_the_first_talk(store: Driven, talk: str) -> None:
    made(store, BranchAction.FORK, 4)
    made(store, BranchAction.FORK, 2, of="talk_0002", to="talk_0003")
    state, entries, values, versions = kept(store, "talk_0003")
    assert (state, entries, values, versions) == ({"count": 1, "only 1": True}, ['["1"]'], {"mood": "1"}, 1)


def test_a_question_that_is_answered_again_has_nothing_of_its_first_answer(store: Driven, talk: str) -> None:
    branched = made(store, BranchAction.REGENERATE, 4)
    assert texts(store, "talk_0002") == ["question 1", "answer 1", "question 2"]
    assert kept(store, "talk_0002")[:3] == ({"count": 1, "only 1": True}, ['["1"]'], {"mood": "1"})
    assert branched.envelope is not None
    claimed = store.write(runs.claim, "talk_0002")
    assert [(e.envelope_id, e.seq) for e in claimed.envelopes] == [("env_talk_0002", 3)]
    assert branched.talk.running


def test_an_edited_first_message_starts_with_nothing(store: Driven, talk: str) -> None:
    branched = made(store, BranchAction.EDIT, 1, content="another")
    assert texts(store, "talk_0002") == ["another"]
    assert kept(store, "talk_0002") == (None, [], {}, 0)
    assert (branched.talk.parent, branched.talk.parent_seq, branched.talk.root) == (TALK, 0, TALK)


def test_a_message_that_is_being_written_cannot_be_copied(store: Driven, talk: str) -> None:
    posted = store.write(messages.post, "ann", TALK, "more", None, None, "t", "env_more", 1.0, 100)
    store.write(answers.open_answer, TALK, "run_more", posted.epoch, "so f")
    with pytest.raises(Conflict, match="message 8 is still being written"):
        made(store, BranchAction.FORK)
    made(store, BranchAction.FORK, 7)
    assert len(texts(store, "talk_0002")) == 7


def test_branches_count_as_talks_of_their_user(store: Driven, talk: str) -> None:
    new = NewBranch("talk_0002", BranchAction.FORK, None, "env")
    with pytest.raises(LimitReached):
        store.write(branches.create, "ann", TALK, new, 1, 1.0)
    with pytest.raises(NotFound):
        store.write(branches.create, "bob", TALK, new, 10, 1.0)
    made(store, BranchAction.EDIT, 3, content="x")
    made(store, BranchAction.FORK, to="talk_0003")
    assert store.write(branches.delete, "ann", TALK) == [TALK, "talk_0002"]
    assert store.read(_count) == 1
    fork = store.read(talks.get, "ann", "talk_0003")
    assert (fork.parent, fork.root) == (None, "talk_0003")
    store.write(branches.delete, "ann", "talk_0003")
    assert store.read(_count) == 0
    assert store.read(_rows) == 0


def _count(tx: Tx) -> Any:
    return quotas.count(tx, "talks", "ann")


def _rows(tx: Tx) -> int:
    tables = ("talks", "messages", "talk_values", "diary", "artifacts", "inbox")
    return sum(len(tx.read(f"SELECT 1 FROM {table}")) for table in tables)


def test_a_version_of_a_version_has_the_same_parent(store: Driven, talk: str) -> None:
    made(store, BranchAction.EDIT, 3, content="x")
    made(store, BranchAction.EDIT, 3, of="talk_0002", to="talk_0003", content="y")
    found = store.read(branches.family, "ann", "talk_0003")
    assert [(b.talk_session_id, b.parent, b.parent_seq) for b in found] == [
        (TALK, None, 0),
        ("talk_0002", TALK, 2),
        ("talk_0003", TALK, 2),
    ]


def test_the_size_of_a_copy_is_that_of_its_messages(store: Driven, talk: str) -> None:
    whole = store.read(branches.copied_chars, "ann", talk, None)
    assert whole == sum(len(text) for text in texts(store, talk))
    assert store.read(branches.copied_chars, "ann", talk, 2) == len("question 1" + "answer 1")
    with pytest.raises(NotFound):
        store.read(branches.copied_chars, "bob", talk, None)
