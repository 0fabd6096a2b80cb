"""The statements, each on every store. `ann` owns the talk; whatever is not hers does not exist for her."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roost.core.envelopes.envelope import Envelope
from roost.core.limits.usage import NOTHING, Usage
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.talks.messages import Message
from roost.core.talks.runs import Posted, StopReason, TalkUpdate
from roost.errors import Busy, Conflict, LimitReached, NotFound
from roost.ports import Tx
from roost.stores.sql import run_history, settlement, stored_size
from roost.stores.sql.talks import answers, messages, runs, talks
from tests.contracts.conftest import Driven

TALK = "talk_0001"


@pytest.fixture
def talk(store: Driven) -> str:
    store.write(talks.create, TALK, "ann", "echo", "interrupt", "", "{}", 10)
    return TALK


def post(store: Driven, content: str, *, key: str | None = None, busy: str | None = None, user: str = "ann") -> Posted:
    posted = store.write(messages.post, user, TALK, content, key, busy, content[:9], f"env_{content[:9]}", 1.0, 100)
    assert isinstance(posted, Posted)
    return posted


def closing(
    epoch: int, *envelopes: Envelope, run_id: str = "run_1", text: str = "answer", lost: bool = False, **changes: Any
) -> Closing:
    fields: dict[str, Any] = {"verdict": Verdict.DONE, "answer": AnswerEnd(lost=lost), "others": envelopes[1:]}
    return Closing(run_id, envelopes[0], epoch, text=text, started=1.0, ended=2.0, **{**fields, **changes})


def settle(store: Driven, c: Closing) -> TalkUpdate:
    [settled] = store.write(settlement.settle, (c,))
    assert isinstance(settled.talk, TalkUpdate)
    assert settled.taken is not settled.talk.superseded
    return settled.talk


def all_of(store: Driven) -> list[tuple[int, str, str]]:
    found: list[Message] = store.read(messages.before, "ann", TALK, 10**9, 1000)
    return [(m.seq, m.content, str(m.status)) for m in found]


def waiting(store: Driven) -> tuple[int, int]:
    """Return the number of messages that wait by the talk's row, and by its lane."""

    def look(tx: Tx) -> tuple[int, int]:
        row = tx.one("SELECT waiting FROM talks WHERE talk_id = :t", {"t": TALK})
        lane = tx.one("SELECT count(*) FROM inbox WHERE lane = :t", {"t": TALK})
        assert row is not None
        assert lane is not None
        return row[0], lane[0]

    found: tuple[int, int] = store.read(look)
    return found


def test_a_message_gets_the_next_number_and_an_envelope(store: Driven, talk: str) -> None:
    first, second = post(store, "a"), post(store, "b", busy="queue")
    assert (first.message.seq, second.message.seq) == (1, 2)
    assert second.revision == first.revision + 1
    assert waiting(store) == (2, 2)
    assert store.read(talks.get, "ann", talk).title == "a"


def test_the_same_key_gives_the_same_message_and_changes_nothing(store: Driven, talk: str) -> None:
    first = post(store, "a", key="k")
    again = post(store, "a", key="k")
    assert again.repeated
    assert again.message == first.message
    assert waiting(store) == (1, 1)
    with pytest.raises(Conflict, match="another content"):
        post(store, "b", key="k")


@pytest.mark.parametrize(
    ("busy", "why"), [("interrupt", StopReason.INTERRUPT), ("rollback", StopReason.ROLLBACK), ("queue", None)]
)
def test_only_some_policies_supersede_the_run(store: Driven, talk: str, busy: str, why: StopReason | None) -> None:
    first = post(store, "a")
    assert first.superseded is None
    second = post(store, "b", busy=busy)
    assert second.superseded == why
    assert second.epoch == first.epoch + (why is not None)


def test_reject_and_a_full_lane_refuse_and_change_nothing(store: Driven, talk: str) -> None:
    post(store, "a")
    with pytest.raises(Busy):
        post(store, "b", busy="reject")
    with pytest.raises(LimitReached, match="wait for an answer"):
        store.write(messages.post, "ann", TALK, "b", None, None, "b", "env_b", 1.0, 1)
    assert all_of(store) == [(1, "a", "complete")]


def test_a_run_that_ends_at_once_adds_its_answer(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    settled = settle(store, closing(posted.epoch, posted.envelope))
    assert settled.message is not None
    assert all_of(store) == [(1, "a", "complete"), (2, "answer", "complete")]
    assert waiting(store) == (0, 0)


def test_a_run_that_says_nothing_leaves_no_empty_answer(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    settle(store, closing(posted.epoch, posted.envelope, text=""))
    assert all_of(store) == [(1, "a", "complete")]
    assert waiting(store) == (0, 0)


def test_an_opened_answer_grows_by_checkpoints_and_is_closed(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    opened = store.write(answers.open_answer, TALK, "run_1", posted.epoch, "")
    for part, text in enumerate(["one ", "two "], start=1):
        store.write(answers.checkpoint, TALK, "run_1", posted.epoch, part, text)
    assert all_of(store)[1] == (opened.message.seq, "one two ", "streaming")
    settle(store, closing(posted.epoch, posted.envelope, text="one two three"))
    assert all_of(store)[1] == (2, "one two three", "complete")


def test_what_seemed_to_fail_and_was_committed_is_not_done_twice(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    for words in ("one ", "one two "):
        opened = store.write(answers.open_answer, TALK, "run_1", posted.epoch, words)
        assert opened.message.seq == 2
    for words in ("three ", "three four "):
        store.write(answers.checkpoint, TALK, "run_1", posted.epoch, 1, words)
    assert all_of(store)[1] == (2, "one two three four ", "streaming")
    for _ in range(2):
        settle(store, closing(posted.epoch, posted.envelope, text="one two three four five"))
    assert all_of(store)[1:] == [(2, "one two three four five", "complete")]
    assert waiting(store) == (0, 0)


def test_a_superseded_run_may_close_its_message_and_nothing_else(store: Driven, talk: str) -> None:
    first = post(store, "a")
    store.write(answers.open_answer, TALK, "run_1", first.epoch, "")
    second = post(store, "b")
    assert store.write(answers.open_answer, TALK, "run_9", first.epoch, "") is None
    store.write(answers.checkpoint, TALK, "run_1", first.epoch, 1, "late")
    settled = settle(store, closing(first.epoch, first.envelope, text="part", state='{"x": 1}'))
    assert settled.superseded
    assert all_of(store) == [(1, "a", "complete"), (2, "part", "interrupted"), (3, "b", "complete")]
    assert waiting(store) == (1, 1)
    assert store.read(talks.load, "ann", TALK, 10).state is None
    assert second.epoch == first.epoch + 1


def test_a_superseded_run_that_said_nothing_leaves_its_envelopes(store: Driven, talk: str) -> None:
    first = post(store, "a")
    post(store, "b")
    settled = settle(store, closing(first.epoch, first.envelope))
    assert settled.left == (first.envelope,)
    assert settled.message is None
    assert waiting(store) == (2, 2)


def test_a_stale_run_cannot_touch_the_message_of_the_one_after_it(store: Driven, talk: str) -> None:
    first = post(store, "a")
    store.write(runs.claim, TALK)
    claimed = store.write(runs.claim, TALK)
    store.write(answers.open_answer, TALK, "run_2", claimed.epoch, "")
    settled = settle(store, closing(first.epoch, first.envelope, text="stale"))
    assert settled.message is None
    assert all_of(store) == [(1, "a", "complete"), (2, "", "streaming")]
    settle(store, closing(claimed.epoch, *claimed.envelopes, run_id="run_2", text="fresh"))
    assert all_of(store)[1] == (2, "fresh", "complete")


def test_a_superseded_run_opens_nothing_and_adds_nothing_to_what_it_has_opened(store: Driven, talk: str) -> None:
    first = post(store, "a")
    store.write(answers.open_answer, TALK, "run_1", first.epoch, "one ")
    second = post(store, "b")
    store.write(answers.checkpoint, TALK, "run_1", first.epoch, 1, "two ")
    assert all_of(store)[1] == (2, "one ", "streaming")
    settle(store, closing(first.epoch, first.envelope, text="one "))
    assert store.write(answers.open_answer, TALK, "run_1", first.epoch, "three ") is None
    assert [text for _, text, _ in all_of(store)] == ["a", "one ", "b"]
    assert store.write(answers.open_answer, TALK, "run_2", second.epoch, "four ").message.seq == 4


def test_a_checkpoint_after_one_that_is_missing_is_not_kept(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    store.write(answers.open_answer, TALK, "run_1", posted.epoch, "one ")
    store.write(answers.checkpoint, TALK, "run_1", posted.epoch, 2, "three ")
    assert all_of(store)[1] == (2, "one ", "streaming")


def test_rollback_withdraws_the_open_answer(store: Driven, talk: str) -> None:
    first = post(store, "a")
    store.write(answers.open_answer, TALK, "run_1", first.epoch, "")
    store.write(answers.checkpoint, TALK, "run_1", first.epoch, 1, "part")
    second = post(store, "b", busy="rollback")
    assert second.withdrawn == 2
    settle(store, closing(first.epoch, first.envelope, text="part"))
    assert all_of(store) == [(1, "a", "complete"), (2, "", "withdrawn"), (3, "b", "complete")]
    assert waiting(store) == (1, 1)


def test_claiming_closes_what_was_being_written_and_counts_no_try(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    store.write(answers.open_answer, TALK, "run_1", posted.epoch, "")
    store.write(answers.checkpoint, TALK, "run_1", posted.epoch, 1, "kept")
    claimed = store.write(runs.claim, TALK)
    assert [e.attempts for e in claimed.envelopes] == [1]
    assert all_of(store)[1] == (2, "kept", "interrupted")
    assert store.read(lambda tx: tx.read("SELECT run_id, outcome FROM runs")) == [("run_1", "lost")]


def test_splitting_ends_a_message_and_the_run_continues(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    store.write(answers.open_answer, TALK, "run_1", posted.epoch, "")
    store.write(answers.split_answer, TALK, "run_1", posted.epoch, "one")
    settle(store, closing(posted.epoch, posted.envelope, text="two"))
    assert all_of(store)[1:] == [(2, "one", "complete"), (3, "two", "complete")]


def test_stopping_drops_what_waits(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    halted = store.write(runs.stop, "ann", TALK)
    assert (halted.waiting, halted.epoch) == (1, posted.epoch + 1)
    assert waiting(store) == (0, 0)
    assert store.write(runs.stop, "ann", TALK).waiting == 0


def test_what_is_unfinished_is_found(store: Driven, talk: str) -> None:
    assert store.read(runs.unfinished, "", 10) == []
    posted = post(store, "a")
    assert store.read(runs.unfinished, "", 10) == [(TALK, "ann", "", "", "echo")]
    store.write(answers.open_answer, TALK, "run_1", posted.epoch, "")
    store.write(runs.stop, "ann", TALK)
    assert store.read(runs.unfinished, "", 10) == [(TALK, "ann", "", "", "echo")], "an open answer is unfinished too"
    assert store.read(runs.unfinished, TALK, 10) == []


def test_pages_go_back_and_changes_go_forward(store: Driven, talk: str) -> None:
    for n in range(10):
        post(store, str(n), busy="queue")
    back = store.read(messages.before, "ann", TALK, 6, 3)
    assert [m.seq for m in back] == [3, 4, 5]
    changed = store.read(messages.changed, "ann", TALK, 7, 0, 100)
    assert [m.seq for m in changed] == [8, 9, 10]
    assert [m.seq for m in store.read(messages.changed, "ann", TALK, 0, 8, 100)] == [9, 10]


def test_talks_are_listed_last_used_first_by_page(store: Driven) -> None:
    for n in range(5):
        store.write(talks.create, f"talk_{n}", "ann", "echo", "interrupt", f"t{n}", "{}", 10)
    listed = store.read(talks.listed, "ann", 3, None)
    assert [t.title for t in listed] == ["t4", "t3", "t2"]
    rest = store.read(talks.listed, "ann", 3, listed[-1].talk_session_id)
    assert [t.title for t in rest] == ["t1", "t0"]


def test_there_is_a_bound_on_talks_and_deleting_makes_room(store: Driven) -> None:
    for n in range(2):
        store.write(talks.create, f"talk_{n}", "ann", "echo", "interrupt", "", "{}", 2)
    with pytest.raises(LimitReached, match="2 talks"):
        store.write(talks.create, "talk_2", "ann", "echo", "interrupt", "", "{}", 2)
    store.write(talks.delete, "ann", "talk_0")
    store.write(talks.create, "talk_2", "ann", "echo", "interrupt", "", "{}", 2)
    assert len(store.read(talks.listed, "ann", 10, None)) == 2


def test_deleting_removes_everything(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    store.write(answers.open_answer, TALK, "run_1", posted.epoch, "")
    store.write(answers.checkpoint, TALK, "run_1", posted.epoch, 1, "x")
    store.write(talks.delete, "ann", TALK)

    def rows(tx: Tx) -> int:
        tables = ("talks", "messages", "parts", "inbox", "runs")
        return sum((tx.one(f"SELECT count(*) FROM {table}") or [0])[0] for table in tables)

    assert store.read(rows) == 0
    assert settle(store, closing(posted.epoch, posted.envelope)).gone


OTHERS: list[Callable[[Driven], object]] = [
    lambda s: s.read(talks.get, "bob", TALK),
    lambda s: s.read(talks.usage, "bob", TALK),
    lambda s: s.write(talks.change, "bob", TALK, {"title": "mine"}),
    lambda s: s.write(talks.delete, "bob", TALK),
    lambda s: s.write(talks.load, "bob", TALK, 10),
    lambda s: post(s, "x", user="bob"),
    lambda s: s.write(runs.stop, "bob", TALK),
]


@pytest.mark.parametrize("attempt", OTHERS)
def test_what_is_not_yours_does_not_exist(store: Driven, talk: str, attempt: Callable[[Driven], object]) -> None:
    post(store, "a", key="k")
    before = all_of(store)
    with pytest.raises(NotFound, match="no such talk"):
        attempt(store)
    assert all_of(store) == before
    assert store.read(messages.before, "bob", TALK, 100, 10) == []
    assert store.read(messages.changed, "bob", TALK, 0, 0, 10) == []


def test_any_unicode_comes_back_identical(store: Driven, talk: str) -> None:
    text = "".join(map(chr, [*range(1, 0x250), 0x1F600, 0x10FFFF, 0xE000, 0x200D, 0xFEFF])) + "x" * 100_000
    post(store, text)
    assert all_of(store)[0][1] == text


def test_the_stored_size_of_a_user_grows_with_their_messages_only(store: Driven, talk: str) -> None:
    before = store.read(stored_size.stored_chars, "ann")
    post(store, "x" * 1_000)
    assert store.read(stored_size.stored_chars, "ann") >= before + 1_000
    assert store.read(stored_size.stored_chars, "eve") == 0


def test_messages_before_a_number_are_counted_by_their_sender(store: Driven, talk: str) -> None:
    first = post(store, "a")
    settle(store, closing(first.epoch, first.envelope))
    post(store, "b")
    counted = [
        store.read(messages.count_of, "ann", TALK, seq, sender) for seq in (1, 3, 9) for sender in ("user", "agent")
    ]
    assert counted == [0, 0, 1, 1, 2, 1]
    assert store.read(messages.count_of, "eve", TALK, 9, "user") == 0


def test_the_traceback_of_a_failed_run_is_kept_with_its_record_for_its_owner(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    failed = closing(posted.epoch, posted.envelope, verdict=Verdict.DEAD, reason="It failed.", traceback="at ä.py:3")
    settle(store, failed)
    assert store.read(run_history.entry, "ann", "run_1").traceback == "at ä.py:3"
    with pytest.raises(NotFound):
        store.read(run_history.entry, "bob", "run_1")


def test_the_usage_of_a_talk_is_that_of_its_runs_and_its_cost_is_known_if_each_is(store: Driven, talk: str) -> None:
    assert store.read(talks.usage, "ann", TALK) == NOTHING
    for number, usage in enumerate((NOTHING, Usage(7, 3, 0.5), Usage(1, 1, 0.25))):
        posted = post(store, f"{number}")
        settle(store, closing(posted.epoch, posted.envelope, run_id=f"run_{number}", usage=usage))
    assert store.read(talks.usage, "ann", TALK) == Usage(8, 4, 0.75)
    posted = post(store, "more")
    settle(store, closing(posted.epoch, posted.envelope, run_id="run_9", usage=Usage(2, 0)))
    assert store.read(talks.usage, "ann", TALK) == Usage(10, 4, None)
