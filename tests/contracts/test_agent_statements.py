"""A2 and A11 on every store: whoever writes for an agent proves by its epoch that it still may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.core import wake
from roost.core.agents import AgentConfig, State
from roost.core.envelopes import Change, Envelope, Kind, Publish, SendTask, Taken, Verdict, WorkClosing
from roost.core.priority import Priority
from roost.core.usage import Usage
from roost.errors import Conflict, LimitReached
from roost.ports import Tx
from roost.stores.statements import agents, inbox, tasks
from tests.contracts.conftest import Driven
from tests.contracts.test_event_statements import create, take


def given_task(store: Driven, address: str, name: str = "task_1") -> tuple[Taken, Envelope]:
    """What the agent is handed over when it wakes."""
    task = Envelope(name, address, Kind.TASK, name, Priority.NORMAL, "user:ann", "do", 1.0, 1.0, recorded=True)
    store.write(inbox.post, SendTask(task))
    taken = take(store, address)
    return taken, taken.envelopes[0]


def done(store: Driven, envelope: Envelope, epoch: int) -> bool:
    closing = WorkClosing(f"run_{epoch}", envelope, epoch, Verdict.DONE, f"of {epoch}", 1.0, 2.0, memory="{}")
    [settled] = store.write(inbox.settle, (closing,))
    assert isinstance(settled.taken, bool)
    return settled.taken


def stop(store: Driven) -> None:
    change = Change("change_x", 3.0, None, State.STOPPED, "stopped", "user:ann")
    news = Publish("event_x", "ann", "agent.failed", {}, Priority.NORMAL, "agent:ann/d", 3.0, optional=True)
    store.write(agents.stop, "ann", "d", change, news)


def test_one_from_whom_an_agent_was_taken_over_ends_nothing(store: Driven) -> None:
    address = create(store, "d")
    before, envelope = given_task(store, address)
    after = take(store, address)
    assert after.epoch > before.epoch
    assert not done(store, envelope, before.epoch)
    assert store.write(inbox.claim, envelope, before.epoch) is None
    assert store.read(tasks.get, "ann", "task_1").status == "queued"
    assert done(store, envelope, after.epoch)
    assert store.read(tasks.get, "ann", "task_1").result == f"of {after.epoch}"


def test_whoever_works_for_an_agent_that_is_stopped_ends_nothing(store: Driven) -> None:
    address = create(store, "d")
    taken, envelope = given_task(store, address)
    stop(store)
    assert not done(store, envelope, taken.epoch)
    assert store.write(inbox.claim, envelope, taken.epoch) is None
    assert store.read(tasks.get, "ann", "task_1").status == "queued"
    assert not take(store, address).ready


def test_what_an_agent_has_no_room_for_in_memory_has_not_been_tried(store: Driven) -> None:
    """E is awake and has no more room: what D sends it waits in the store, and that costs it no try."""
    address = create(store, "d")
    taken, envelope = given_task(store, address)
    roomy, crowded = create(store, "f"), create(store, "e")
    sent = tuple(
        SendTask(Envelope(f"env_{to}", to, Kind.TASK, f"env_{to}", Priority.NORMAL, f"agent:{address}", "x", 1.0, 1.0))
        for to in (roomy, crowded)
    )
    closing = WorkClosing("run_1", envelope, taken.epoch, Verdict.DONE, "", 1.0, 2.0, sent=sent)
    [settled] = store.write(inbox.settle, (closing,), frozenset({crowded}))
    assert [one.address for one in settled.posted] == [roomy, crowded]
    tried = store.read(lambda tx: tx.read("SELECT address, attempts FROM inbox ORDER BY address"))
    assert [tuple(row) for row in tried] == [(crowded, 0), (roomy, 1)]


@pytest.mark.parametrize("how", ["cancelled", "stopped", "released", "taken over", "deleted", "made again"])
def test_a_try_that_is_cut_off_leaves_a_record_and_what_it_has_cost(store: Driven, how: str) -> None:
    address = create(store, "d")
    taken, envelope = given_task(store, address)
    if how == "cancelled":
        store.write(tasks.cancel, "ann", "task_1", 3.0)
    elif how == "stopped":
        stop(store)
    elif how == "taken over":
        take(store, address)
    elif how in ("deleted", "made again"):
        store.write(agents.delete, "ann", "d")
    if how == "made again":
        new = Change("change_y", 5.0, None, State.IDLE, "created", "ann")
        store.write(agents.create, "ann", ("d",), AgentConfig(), new, 100)
    verdict = {"cancelled": Verdict.CANCELLED, "released": Verdict.RELEASED}.get(how, Verdict.DONE)
    closing = WorkClosing(
        "run_1", envelope, taken.epoch, verdict, "half", 2.0, 4.0, memory="{}", usage=Usage(7, 3), profile="p"
    )
    for _ in range(2):  # as when it is not known whether it was written
        [settled] = store.write(inbox.settle, (closing,))
        assert settled.taken is (how == "released")
    there = [] if how in ("deleted", "made again") else [("stopped", 1, 2.0, 4.0, "half", 7)]
    assert rows(store, "SELECT outcome, attempts, started, ended, said, input_tokens FROM runs") == there
    assert rows(store, "SELECT day, profile, tokens FROM spending") == [("1970-01-01", "p", 10)] * len(there)
    assert rows(store, "SELECT memory FROM agents") == [(None,)] * (how != "deleted")
    tried = [] if how in ("deleted", "made again") else [(1, 2.0)] if how == "cancelled" else [(0, None)]
    assert rows(store, "SELECT attempts, started FROM tasks") == tried


def test_of_several_turns_that_ask_for_sleep_one_is_on_record(store: Driven) -> None:
    address = create(store, "d")
    taken, first = given_task(store, address)
    others = [replace(first, envelope_id=f"task_{number}", lane=f"task_{number}") for number in (2, 3)]
    for other in others:
        store.write(inbox.post, SendTask(other))
    closings = [
        WorkClosing(
            f"run_{number}", envelope, taken.epoch, Verdict.DONE, "", 1.0, 2.0, sleep=wake.to_json(wake.event("never")),
            changes=[Change(f"change_z{number}", 2.0, State.ACTIVE, State.SLEEPING, f"by {number}", "agent:ann/d")],
        )
        for number, envelope in enumerate([first, *others])
    ]  # fmt: skip
    assert all(one.taken for one in store.write(inbox.settle, tuple(closings[:2])))
    assert store.write(inbox.settle, (closings[2],))[0].taken
    assert rows(store, "SELECT cause FROM agent_changes WHERE after = 'sleeping'") == [("by 0",)]


def rows(store: Driven, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in store.read(lambda tx: tx.read(sql))]


@pytest.mark.parametrize("together", [True, False])
def test_what_a_refused_try_remembered_is_not_kept_by_those_that_follow_it(store: Driven, together: bool) -> None:
    """What was done before is handed over once more, late; and somebody else writes what the agent knows."""
    address = create(store, "d")
    taken, first = given_task(store, address)
    assert done(store, first, taken.epoch)
    others = [replace(first, envelope_id=f"task_{number}", lane=f"task_{number}") for number in (2, 3, 4)]
    for envelope in others:
        store.write(inbox.post, SendTask(envelope))
    said = ["{}", '{"a": 1}', '{"a": 1, "again": 1}', '{"a": 1, "again": 1, "b": 2}', '{"again": 1, "b": 2}']
    tries = [
        WorkClosing(f"run_{n}", e, taken.epoch, Verdict.DONE, "", 1.0, 2.0, knew=said[n], memory=said[n + 1])
        for n, e in enumerate((others[0], first, others[1], others[2]))
    ]
    groups = [tries] if together else [[one] for one in tries]
    settled = [one.taken for group in groups for one in store.write(inbox.settle, tuple(group))]
    assert settled == [True, False, True, True]
    assert take(store, address).memory == '{"b": 2}'


def errors(store: Driven) -> list[int]:
    def look(tx: Tx) -> list[int]:
        return [row[0] for row in tx.read("SELECT errors FROM agents ORDER BY address")]

    found: list[int] = store.read(look)
    return found


@pytest.mark.parametrize("odd", ["none", "taken over", "has failed", "gone"])
def test_of_many_that_end_at_once_each_is_looked_at(store: Driven, odd: str) -> None:
    given = [given_task(store, create(store, f"a{number}"), f"task_{number}") for number in range(7)]
    if odd == "has failed":
        taken, envelope = given[3]
        again = WorkClosing("run_x", envelope, taken.epoch, Verdict.RETRY, "", 1.0, 2.0, "no", "brain", due=1.0)
        assert store.write(inbox.settle, (again,))[0].taken
        assert errors(store) == [0, 0, 0, 1, 0, 0, 0]
    elif odd == "taken over":
        take(store, "ann/a3")
    elif odd == "gone":
        store.write(lambda tx: tx.write("DELETE FROM agents WHERE address = 'ann/a3'"))
    closings = tuple(
        WorkClosing(f"run_{number}", envelope, taken.epoch, Verdict.DONE, "done", 1.0, 2.0)
        for number, (taken, envelope) in enumerate(given)
    )
    lost = odd in ("taken over", "gone")
    assert [one.taken for one in store.write(inbox.settle, closings)] == [True] * 3 + [not lost] + [True] * 3
    assert not any(errors(store))


@pytest.mark.parametrize("before", [None, "active"])
def test_the_state_that_only_whoever_works_for_it_knows_is_on_record(store: Driven, before: str | None) -> None:
    create(store, "d")
    change = Change("change_x", 3.0, before, State.SLEEPING, "put to sleep", "user:ann")
    store.write(agents.sleep, "ann", "d", '{"event":"x"}', change)
    assert store.read(agents.history, "ann", "d", 1, "\x7f")[0].before == (before or "idle")


def test_there_is_a_bound_on_agents_and_deleting_makes_room(store: Driven) -> None:
    change = Change("change_x", 1.0, None, State.IDLE, "created", "user:ann")

    def make(*names: str) -> None:
        store.write(agents.create, "ann", names, AgentConfig(), change, 3)

    make("a", "b")
    with pytest.raises(LimitReached, match="delete some first"):
        make("c", "d")
    with pytest.raises(Conflict, match="'b' already"):
        make("b")
    assert [one.agent_id for one in store.read(agents.listed, "ann", 10, "", None)] == ["a", "b"]
    make("c")
    store.write(agents.delete, "ann", "a")
    make("d")
    assert [one.agent_id for one in store.read(agents.listed, "ann", 10, "", None)] == ["b", "c", "d"]
