"""Done for many at once or one by one: the same is given, refused and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.core.envelopes.effects import Effect, Publish, SendTask
from roost.core.envelopes.envelope import Envelope, Kind, message_envelope
from roost.core.envelopes.envelope import Envelope as Posted
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.values.priority import Priority
from roost.errors import Invalid, RoostError
from roost.hosts.pending import drive
from roost.ports import Pending, Tx
from roost.stores.batching import Calls, batch_function, batched_by
from roost.stores.sql import settlement
from roost.stores.sql.sending import effects as posting
from roost.stores.sql.talks import answers, messages, runs, talks
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create

TABLES = ("talks", "messages", "inbox", "runs", "users", "parts", "tasks", "timers", "dead_letters")
POLICIES = ("interrupt", "rollback", "queue", "collect", "reject")
VERDICTS = (
    Verdict.DONE,
    Verdict.DONE,
    Verdict.DEAD,
    Verdict.CANCELLED,
    Verdict.INTERRUPTED,
    Verdict.RELEASED,
    Verdict.RETRY,
    Verdict.WAITING,
)
everywhere = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def one_by_one(tx: Tx, op: Callable[..., Any], calls: Calls) -> list[Any]:
    def done(call: tuple[Any, ...]) -> Any:
        try:
            return op(tx, *call)
        except RoostError as refusal:
            return repr(refusal)

    return [done(call) for call in calls]


def at_once(tx: Tx, op: Callable[..., Any], calls: Calls) -> list[Any]:
    many = batch_function(op, [str(number) for number in range(max(2, len(calls)))])
    assert many is not None
    done = many(tx, calls)
    return [one_by_one(tx, op, [call])[0] if one is None else one for call, one in zip(calls, done, strict=True)]


def forgotten(tx: Tx) -> None:
    for table in TABLES:
        tx.write(f"DELETE FROM {table}")
    tx.capacity.clear()  # bounds of what is deleted


def alike(value: Any) -> Any:
    """Without what is of the moment."""
    if isinstance(value, float | datetime):
        return "a time"
    if is_dataclass(value) and not isinstance(value, type):
        return [(f.name, alike(getattr(value, f.name))) for f in fields(value)]
    return [alike(one) for one in value] if isinstance(value, list | tuple) else value


def both_ways(
    store: Driven, prepare: Callable[[Tx], Any], op: Callable[..., Any], calls: Callable[[Any], Calls]
) -> tuple[Any, Any]:
    """Return results and rows of the calls written in one batch, and one by one."""

    def result(do: Callable[..., list[Any]]) -> tuple[Any, Any]:
        def act(tx: Tx) -> tuple[Any, Any]:
            forgotten(tx)
            given = calls(prepare(tx))
            return alike(do(tx, op, given)), rows_without_times(tx)

        found: tuple[Any, Any] = store.write(act)
        return found

    return result(at_once), result(one_by_one)


def rows_without_times(tx: Tx) -> dict[str, list[str]]:
    return {table: sorted(repr(alike(tuple(row))) for row in tx.read(f"SELECT * FROM {table}")) for table in TABLES}


class Talk:
    """Talk before the calls: `waiting` messages, perhaps an answer that is being written, perhaps just stopped."""

    def __init__(self, name: str, waiting: int, opened: bool, stopped: bool, busy: str) -> None:
        self.name, self.waiting, self.opened, self.stopped, self.busy = name, waiting, opened, stopped, busy
        self.envelopes: list[Envelope] = []
        self.epoch = 0

    def prepare(self, tx: Tx) -> Talk:
        self.envelopes = []
        talks.create(tx, self.name, "ann", "echo", self.busy, "", "{}", 100)
        for number in range(self.waiting):
            posted = messages.post(
                tx,
                "ann",
                self.name,
                f"before {number}",
                f"key-{number}",
                "queue",
                "t",
                f"e-{self.name}-{number}",
                1.0,
                100,
            )
            self.envelopes.append(posted.envelope)
            self.epoch = posted.epoch
        if self.opened and self.waiting:
            answers.open_answer(tx, self.name, f"run-{self.name}", self.epoch, "half an ans")
        if self.stopped:
            runs.stop(tx, "ann", self.name)
        return self


@st.composite
def standing(draw: st.DrawFn) -> list[Talk]:
    number, flags = draw(st.integers(1, 5)), st.tuples(st.booleans(), st.booleans())
    return [
        Talk(f"t{n}", draw(st.integers(0, 2)), *draw(flags), draw(st.sampled_from(POLICIES))) for n in range(number)
    ]


def choices(data: st.DataObject) -> Callable[..., Any]:
    return lambda *values: data.draw(st.sampled_from(values))


@everywhere
@given(st.lists(st.sampled_from(["ann", "bob"]), min_size=1, max_size=6), st.integers(0, 6))
def test_talks_are_made_alike(store: Driven, owners: list[str], most: int) -> None:
    calls = [(f"t{n}", owner, "echo", "queue", "", "{}", most) for n, owner in enumerate(owners)]
    together, alone = both_ways(store, lambda tx: None, talks.create, lambda _: calls)
    assert together == alone


@everywhere
@given(standing(), st.data())
def test_messages_are_posted_alike(store: Driven, there: list[Talk], data: st.DataObject) -> None:
    one_of = choices(data)
    calls = [
        (
            one_of("ann", "ann", "ann", "bob"),
            talk.name,
            one_of("a", "before 0"),
            one_of(None, None, "new", "key-0"),
            one_of(None, *POLICIES),
            "title",
            f"new-{talk.name}",
            2.0,
            one_of(0, 1, 100),
        )
        for talk in there
    ]
    calls += [("ann", "nowhere", "a", None, None, "title", "new-nowhere", 2.0, 100)]
    together, alone = both_ways(store, lambda tx: [talk.prepare(tx) for talk in there], messages.post, lambda _: calls)
    assert together == alone


@pytest.mark.parametrize("shared", [True, False])
def test_to_anothers_agent_messages_are_posted_alike_and_only_while_it_is_shared(store: Driven, shared: bool) -> None:
    keys = ["", create(store, "d"), create(store, "e", user="bob", shared=shared), create(store, "f", user="ann/bob")]

    def prepare(tx: Tx) -> Calls:
        for key in keys:
            talks.create(tx, f"with {key}", "ann", "", "interrupt", "", "{}", 100, key)
        return [("ann", f"with {key}", "a", None, None, "title", f"to {key}", 2.0, 100) for key in keys]

    together, alone = both_ways(store, prepare, messages.post, lambda calls: calls)
    assert together == alone
    refused = [given for given in together[0] if isinstance(given, str)]
    names = ["f"] if shared else ["e", "f"]
    assert [name for name in names if any(f"no agent '{name}'" in one for one in refused)] == names
    assert len(together[1]["messages"]) == len(together[1]["inbox"]) == len(keys) - len(refused) == 4 - len(names)


@everywhere
@given(standing(), st.data())
def test_runs_are_settled_alike(store: Driven, there: list[Talk], data: st.DataObject) -> None:
    one_of = choices(data)
    drawn = [
        {
            "verdict": one_of(*VERDICTS),
            "text": one_of("answer", ""),
            "state": one_of(None, '{"n": 1}'),
            "reason": one_of("", "it failed"),
            "lost": one_of(False, False, True),
            "late": one_of(0, 0, 0, 1),
            "all": one_of(False, True),
        }
        for _ in there
    ]

    def calls(prepared: list[Talk]) -> Sequence[tuple[tuple[Closing, ...]]]:
        closings = []
        for talk, how in zip(prepared, drawn, strict=True):
            given = dict(how)
            epoch, every = talk.epoch - given.pop("late"), given.pop("all")
            first, *others = talk.envelopes or [message_envelope(f"gone-{talk.name}", talk.name, "", 1, 1.0, "queue")]
            answer = AnswerEnd(lost=given.pop("lost"))
            more = tuple(others) if every else ()
            run = Closing(f"run-{talk.name}", first, epoch, started=1.0, ended=2.0, others=more, answer=answer, **given)
            closings.append(((run,),))
        return closings

    together, alone = both_ways(store, lambda tx: [talk.prepare(tx) for talk in there], settlement.settle, calls)
    assert together == alone


def a_task(number: int, address: str, **how: Any) -> SendTask:
    key, schedule = how.pop("key", None), how.pop("schedule_id", None)
    envelope = Posted(
        f"task_{number}",
        address,
        Kind.TASK,
        f"task_{number}",
        Priority.NORMAL,
        "user:ann",
        "do it",
        1.0,
        1.0,
        recorded=True,
        **how,
    )
    return SendTask(envelope, key, schedule)


@everywhere
@given(st.data())
def test_tasks_are_posted_alike(store: Driven, data: st.DataObject) -> None:
    there = [f"ann/{name}" for name in ("d", "e")]
    if not store.read(lambda tx: tx.read("SELECT 1 FROM agents")):
        for address in there:
            create(store, address.removeprefix("ann/"), "news", inbox_limit=2)
    one_of = choices(data)
    effects: list[Effect] = [
        a_task(
            number,
            one_of(*there, "ann/nobody"),
            key=one_of(None, None, "a", "b"),
            expires=one_of(None, 5.0, 9.0),
            schedule_id=one_of(None, None, "sched_1"),
        )
        for number in range(data.draw(st.integers(1, 6)))
    ]
    if one_of(True, False):
        event = Publish("event_1", "ann", one_of("news", "untaken"), None, Priority.NORMAL, "user:ann", 1.0)
        effects.insert(one_of(*range(len(effects) + 1)), event)
    together, alone = both_ways(store, lambda tx: None, posting.post, lambda _: [(effect,) for effect in effects])
    assert together[1] == alone[1]
    assert together[0] == alone[0]


# --- the engine ------------------------------------------------------------------------------------


def told(jobs: Sequence[Pending[Any]]) -> list[Any]:
    """Return the result of each job, or the text of its refusal."""

    async def results() -> list[Any]:
        found = []
        for job in jobs:
            try:
                found.append(await job)
            except RoostError as refusal:
                found.append(str(refusal))
        return found

    return drive(results())


asked: list[list[str]] = []


def note_all(tx: Tx, calls: Calls) -> list[str | None]:
    asked.append([name for [name] in calls])
    return [None if name in ("alone", "refused") else f"{name} with others" for [name] in calls]


@batched_by(note_all)
def note(tx: Tx, name: str) -> str:
    if name == "refused":
        raise Invalid("no")
    return f"{name} by itself"


@batched_by(note_all, of_one_key=True)
def note_any(tx: Tx, name: str) -> str:
    return note(tx, name)


@pytest.mark.parametrize(
    ("op", "keys", "together"),
    [(note, "klmn", True), (note, "klkn", False), (note_any, "klkn", True), (note_any, "kkkk", True)],
    ids=["different", "two the same", "two the same that may be", "one key for all"],
)
def test_the_engine_does_at_once_what_may_be(store: Driven, op: Callable[..., Any], keys: str, together: bool) -> None:
    asked.clear()
    names = ["a", "alone", "refused", "b"]
    with store.held():
        jobs = [store.engine.write(op, name, key=key) for name, key in zip(names, keys, strict=True)]
    how = "with others" if together else "by itself"
    assert told(jobs) == [f"a {how}", "alone by itself", "no", f"b {how}"]
    assert asked == ([names] if together else [])


def test_a_message_that_no_store_keeps_fails_alone(store: Driven) -> None:
    owners = {f"t{number}": "ann" if number != 2 else "bob" for number in range(5)}
    for talk, owner in owners.items():
        store.write(talks.create, talk, owner, "echo", "queue", "", "{}", 10)
    said = ["one", "half of \ud800 a pair", "not ann's", "three", "four"]
    with store.held():
        jobs = [
            store.engine.write(messages.post, "ann", talk, text, None, None, "t", f"e-{talk}", 1.0, 9, key=talk)
            for talk, text in zip(owners, said, strict=True)
        ]
    one, half, foreign, three, four = told(jobs)
    assert [posted.message.content for posted in (one, three, four)] == ["one", "three", "four"]
    assert half == "a text contains half of a surrogate pair, which cannot be stored"
    assert foreign == "there is no such talk: it was deleted, or it never existed"

    def kept(tx: Tx) -> tuple[list[Any], list[Any]]:
        return tx.read("SELECT content FROM messages ORDER BY talk_id"), tx.read("SELECT lane FROM inbox ORDER BY lane")

    assert store.read(kept) == ([("one",), ("three",), ("four",)], [("t0",), ("t3",), ("t4",)])
