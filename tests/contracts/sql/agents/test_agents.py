"""A2 and A11 on every store: a write for an agent needs the agent's current epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig, State
from roost.core.agents.agent_filter import AgentFilter
from roost.core.envelopes.claims import ClaimedWork
from roost.core.envelopes.effects import Publish, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.limits.usage import Usage
from roost.core.runs import Closing, Verdict
from roost.core.values.priority import Priority
from roost.errors import Conflict, LimitReached
from roost.ports import Tx
from roost.stores.sql import settlement, tasks
from roost.stores.sql.agents import agents, lifecycle, listing
from roost.stores.sql.inbox import in_progress
from roost.stores.sql.sending import effects
from roost.stores.sql.tables import token_usage
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create, take


def given_task(store: Driven, address: str, name: str = "task_1") -> tuple[ClaimedWork, Envelope]:
    """Return the work that the agent is handed when it wakes, and the envelope."""
    task = Envelope(name, address, Kind.TASK, name, Priority.NORMAL, "user:ann", "do", 1.0, 1.0, recorded=True)
    store.write(effects.post, SendTask(task))
    taken = take(store, address)
    return taken, taken.envelopes[0]


def done(store: Driven, envelope: Envelope, epoch: int) -> bool:
    closing = Closing(f"run_{epoch}", envelope, epoch, Verdict.DONE, f"of {epoch}", 1.0, 2.0, state="{}")
    [settled] = store.write(settlement.settle, (closing,))
    assert isinstance(settled.taken, bool)
    return settled.taken


def stop(store: Driven) -> None:
    change = StateChange("change_x", 3.0, None, State.STOPPED, "stopped", "user:ann")
    news = Publish("event_x", "ann", "agent.failed", {}, Priority.NORMAL, "agent:ann/d", 3.0, optional=True)
    store.write(lifecycle.stop, "ann", "d", change, news)


def test_a_former_owner_of_an_agent_settles_nothing(store: Driven) -> None:
    address = create(store, "d")
    before, envelope = given_task(store, address)
    after = take(store, address)
    assert after.epoch > before.epoch
    assert not done(store, envelope, before.epoch)
    assert store.write(in_progress.recorded, envelope, before.epoch) is None
    assert store.read(tasks.get, "ann", "task_1").status == "queued"
    assert done(store, envelope, after.epoch)
    assert store.read(tasks.get, "ann", "task_1").result == f"of {after.epoch}"


def test_a_run_of_a_stopped_agent_settles_nothing(store: Driven) -> None:
    address = create(store, "d")
    taken, envelope = given_task(store, address)
    stop(store)
    assert not done(store, envelope, taken.epoch)
    assert store.write(in_progress.recorded, envelope, taken.epoch) is None
    assert store.read(tasks.get, "ann", "task_1").status == "queued"
    assert not take(store, address).ready


def test_a_try_is_counted_when_it_has_failed_and_not_before(store: Driven) -> None:
    address = create(store, "d")
    taken, envelope = given_task(store, address)
    assert [row[0] for row in store.read(lambda tx: tx.read("SELECT attempts FROM inbox"))] == [0]
    closing = Closing("run_1", envelope, taken.epoch, Verdict.RETRY, "", 1.0, 2.0, due=3.0)
    for _ in range(2):  # the second time it is not known whether the first was done
        assert store.write(settlement.settle, (closing,))[0].taken
        assert [row[0] for row in store.read(lambda tx: tx.read("SELECT attempts FROM inbox"))] == [1]


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
        store.write(lifecycle.delete, "ann", "d")
    if how == "made again":
        new = StateChange("change_y", 5.0, None, State.IDLE, "created", "ann")
        store.write(agents.create, "ann", ("d",), AgentConfig(), new, 100)
    verdict = {"cancelled": Verdict.CANCELLED, "released": Verdict.RELEASED}.get(how, Verdict.DONE)
    closing = Closing(
        "run_1", envelope, taken.epoch, verdict, "half", 2.0, 4.0, state="{}", usage=Usage(7, 3), profile="p"
    )
    for _ in range(2):  # as when it is not known whether it was written
        [settled] = store.write(settlement.settle, (closing,))
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
        store.write(effects.post, SendTask(other))
    closings = [
        Closing(
            f"run_{number}",
            envelope,
            taken.epoch,
            Verdict.DONE,
            "",
            1.0,
            2.0,
            sleep=wake.to_json(wake.event("never")),
            changes=[
                StateChange(f"change_z{number}", 2.0, State.ACTIVE, State.SLEEPING, f"by {number}", "agent:ann/d")
            ],
        )
        for number, envelope in enumerate([first, *others])
    ]
    assert all(one.taken for one in store.write(settlement.settle, tuple(closings[:2])))
    assert store.write(settlement.settle, (closings[2],))[0].taken
    assert rows(store, "SELECT cause FROM agent_changes WHERE after = 'sleeping'") == [("by 0",)]


def rows(store: Driven, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in store.read(lambda tx: tx.read(sql))]


@pytest.mark.parametrize("together", [True, False])
def test_what_a_refused_try_remembered_is_not_kept_by_those_that_follow_it(store: Driven, together: bool) -> None:
    """Hand over finished work once more, late, while somebody else writes the agent's state."""
    address = create(store, "d")
    taken, first = given_task(store, address)
    assert done(store, first, taken.epoch)
    others = [replace(first, envelope_id=f"task_{number}", lane=f"task_{number}") for number in (2, 3, 4)]
    for envelope in others:
        store.write(effects.post, SendTask(envelope))
    said = ["{}", '{"a": 1}', '{"a": 1, "again": 1}', '{"a": 1, "again": 1, "b": 2}', '{"again": 1, "b": 2}']
    tries = [
        Closing(f"run_{n}", e, taken.epoch, Verdict.DONE, "", 1.0, 2.0, state_before=said[n], state=said[n + 1])
        for n, e in enumerate((others[0], first, others[1], others[2]))
    ]
    groups = [tries] if together else [[one] for one in tries]
    settled = [one.taken for group in groups for one in store.write(settlement.settle, tuple(group))]
    assert settled == [True, False, True, True]
    assert take(store, address).turn_state == '{"b": 2}'


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
        again = Closing("run_x", envelope, taken.epoch, Verdict.RETRY, "", 1.0, 2.0, "no", "brain", due=1.0)
        assert store.write(settlement.settle, (again,))[0].taken
        assert errors(store) == [0, 0, 0, 1, 0, 0, 0]
    elif odd == "taken over":
        take(store, "ann/a3")
    elif odd == "gone":
        store.write(lambda tx: tx.write("DELETE FROM agents WHERE address = 'ann/a3'"))
    closings = tuple(
        Closing(f"run_{number}", envelope, taken.epoch, Verdict.DONE, "done", 1.0, 2.0)
        for number, (taken, envelope) in enumerate(given)
    )
    lost = odd in ("taken over", "gone")
    assert [one.taken for one in store.write(settlement.settle, closings)] == [True] * 3 + [not lost] + [True] * 3
    assert not any(errors(store))


def announced(number: int, after: State, at: float = 3.0) -> StateChange:
    return StateChange(f"change_a{number}", at, None, after, f"by {number}", "roost", announced=True)


def chain(store: Driven) -> list[tuple[str | None, str, str, float]]:
    found = store.read(lifecycle.history, "ann", "d", 100, "\x7f")
    return [(c.before, c.after, c.cause, c.at.timestamp()) for c in reversed(found)]


@pytest.mark.parametrize("works", [False, True])
def test_what_it_does_is_on_record_before_what_ends_it(store: Driven, works: bool) -> None:
    create(store, "d")
    earlier = (announced(1, State.ACTIVE),) if works else ()
    change = StateChange("change_x", 3.0, None, State.SLEEPING, "put to sleep", "user:ann", earlier=earlier)
    store.write(lifecycle.sleep, "ann", "d", '{"event":"x"}', change)
    assert store.read(lifecycle.history, "ann", "d", 1, "\x7f")[0].before == ("active" if works else "idle")


def test_history_is_a_chain_whatever_comes_in_which_order(store: Driven) -> None:
    address = create(store, "d")
    taken, _ = given_task(store, address)
    paused = StateChange("change_p", 9.0, None, "", "paused", "user:ann", earlier=(announced(1, State.ACTIVE),))
    store.write(lifecycle.pause, "ann", "d", True, paused)
    late = [announced(1, State.ACTIVE), announced(2, State.WAITING, 1.0), announced(3, State.IDLE)]
    store.write(settlement.settle, (), tuple((address, taken.epoch, change) for change in reversed(late)))
    store.write(settlement.settle, (), ((address, taken.epoch - 1, announced(4, State.ACTIVE)),))
    stopped = StateChange("change_b", 2.0, None, State.STOPPED, "stopped", "user:ann")
    news = Publish("event_1", "ann", "agent.failed", {}, Priority.NORMAL, address, 2.0, optional=True)
    assert store.write(lifecycle.stop, "ann", "d", stopped, news) is not None
    store.write(settlement.settle, (), ((address, taken.epoch + 1, announced(5, State.ACTIVE)),))
    assert chain(store) == [
        (None, "idle", "created", 1.0),
        ("idle", "active", "by 1", 3.0),
        ("active", "active", "paused", 9.0),
        ("active", "waiting", "by 2", 9.0),
        ("waiting", "idle", "by 3", 9.0),
        ("idle", "stopped", "stopped", 9.0),
    ]


def test_what_is_announced_twice_is_on_record_once(store: Driven) -> None:
    """Store announced changes with a request and by themselves, in either order."""
    address = create(store, "d")
    taken, _ = given_task(store, address)
    twice = (announced(1, State.ACTIVE), announced(2, State.IDLE))
    paused = StateChange("change_b", 4.0, None, "", "paused", "user:ann", earlier=twice)
    store.write(lifecycle.pause, "ann", "d", True, paused)
    store.write(settlement.settle, (), tuple((address, taken.epoch, change) for change in twice))
    resumed = StateChange("change_c", 5.0, None, "", "resumed", "user:ann", earlier=twice)
    store.write(lifecycle.pause, "ann", "d", False, resumed)
    assert [cause for *_, cause, _ in chain(store)] == ["created", "by 1", "by 2", "paused", "resumed"]


def test_there_is_a_bound_on_agents_and_deleting_makes_room(store: Driven) -> None:
    change = StateChange("change_x", 1.0, None, State.IDLE, "created", "user:ann")

    def make(*names: str) -> None:
        store.write(agents.create, "ann", names, AgentConfig(), change, 3)

    make("a", "b")
    with pytest.raises(LimitReached, match="delete some first"):
        make("c", "d")
    with pytest.raises(Conflict, match="'b' already"):
        make("b")
    assert [one.agent_id for one in store.read(listing.listed, "ann", AgentFilter(), 10, "")] == ["a", "b"]
    make("c")
    store.write(lifecycle.delete, "ann", "a")
    make("d")
    assert [one.agent_id for one in store.read(listing.listed, "ann", AgentFilter(), 10, "")] == ["b", "c", "d"]


def test_an_agent_is_recorded_as_idle_only_when_its_inbox_is_empty(store: Driven) -> None:
    address = create(store, "d")
    taken, envelope = given_task(store, address)
    store.write(settlement.settle, (), ((address, taken.epoch, announced(1, State.ACTIVE)),))
    store.write(lifecycle.record_idle, "ann", "d", announced(2, State.IDLE))
    assert chain(store)[-1][1] == "active"
    assert done(store, envelope, taken.epoch)
    store.write(lifecycle.record_idle, "ann", "d", announced(3, State.IDLE))
    assert chain(store)[-1][:3] == ("active", "idle", "by 3")


def test_the_tokens_of_a_plain_message_are_counted(store: Driven) -> None:
    """It leaves no record of a run, but the tokens count for the profile's limit per day."""
    key = create(store, "d")
    plain = Envelope("task_1", key, Kind.TASK, "from:x", Priority.NORMAL, "agent:ann/e", "do", 1.0, 1.0)
    store.write(effects.post_all, (SendTask(plain),), 1.0)
    usage = Usage(model="m", input_tokens=3, output_tokens=4)
    done = Closing("run_1", plain, take(store, key).epoch, Verdict.DONE, "", 1.0, 2.0, usage=usage, profile="p")
    assert store.write(settlement.settle, (done,))[0].taken
    assert store.read(token_usage.tokens_used, "1970-01-01", "p") == 7
    assert store.read(lambda tx: tx.read("SELECT run_id FROM runs")) == []
