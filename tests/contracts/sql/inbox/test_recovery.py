"""A4: what may have been under way when a process died is suspected, then quarantined, and only then counted."""

from __future__ import annotations

from itertools import count
from typing import Any

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.journal.steps import Attempt
from roost.core.runs import Closing, Verdict
from roost.core.values.priority import Priority
from roost.stores.sql import settlement
from roost.stores.sql.inbox import recovery
from roost.stores.sql.journal import steps
from roost.stores.sql.sending import effects
from roost.stores.sql.talks import runs
from tests.contracts.conftest import Driven
from tests.contracts.sql.talks.test_talks import TALK, closing, post, settle, talk
from tests.contracts.sql.test_events import create, take

__all__ = ["talk"]
NOW = 1_000.0
NUMBERS = count(1)


def tasks(store: Driven, address: str, *names: str) -> None:
    for name in names:
        task = Envelope(name, address, Kind.TASK, name, Priority.NORMAL, "user:ann", "do", 1.0, 1.0, recorded=True)
        store.write(effects.post, SendTask(task))


def marks(store: Driven) -> dict[str, tuple[int, int]]:
    """Of each envelope how far it is suspected, and how many tries are counted."""
    rows = store.read(lambda tx: tx.read("SELECT envelope_id, suspect, attempts FROM inbox"))
    return {row[0]: (row[1], row[2]) for row in rows}


def live(store: Driven, times: int = 1) -> Any:
    """A process starts, so often; none is closed. How many suspects the last one finds."""
    return [store.write(recovery.recover, NOW, f"process_{next(NUMBERS)}") for _ in range(times)][-1]


def test_of_each_agent_as_many_are_suspected_as_it_does_at_once(store: Driven) -> None:
    tasks(store, create(store, "d"), "a", "b")
    tasks(store, create(store, "e", max_concurrent_tasks=2), "c", "d", "e")
    assert live(store) == 0, "nothing was there before"
    assert live(store) == 3
    assert marks(store) == {"a": (1, 0), "b": (0, 0), "c": (1, 0), "d": (1, 0), "e": (0, 0)}


def test_a_lane_has_one_suspect_and_what_has_steps_is_one(store: Driven) -> None:
    address = create(store, "d")
    tasks(store, address, "a", "b", "c")
    for name in ("e", "f"):
        plain = Envelope(name, address, Kind.TASK, "from:x", Priority.URGENT, "agent:x", "do", 1.0, -60.0)
        store.write(effects.post, SendTask(plain))
    place = Attempt("b", address, False, take(store, address).epoch, "run_1", "ann", "d")
    store.write(steps.begin, place, 1, "step", "known", "step:known", None, "begun", 1.0)
    live(store, 2)
    assert {name for name, (suspect, _) in marks(store).items() if suspect} == {"b", "e"}


def test_who_sleeps_is_stopped_or_paused_has_no_suspects(store: Driven) -> None:
    for name, column in (("d", "state = 'sleeping'"), ("e", "state = 'stopped'"), ("f", "paused = 1")):
        address = create(store, name)
        tasks(store, address, f"task_{name}")
        store.write(lambda tx, a=address, c=column: tx.write(f"UPDATE agents SET {c} WHERE address = :a", {"a": a}))
    assert live(store, 2) == 0


def test_a_suspect_that_is_lost_again_is_quarantined_and_then_each_death_counts(store: Driven) -> None:
    tasks(store, create(store, "d"), "a")
    live(store, 3)
    assert marks(store) == {"a": (2, 0)}
    live(store)
    assert marks(store) == {"a": (2, 0)}, "it has not begun in quarantine"
    for tries in (1, 2):
        assert store.write(recovery.isolate, ["a"]) is True
        assert marks(store)["a"] == (3, tries - 1)
        live(store)
        assert marks(store)["a"] == (2, tries)
    assert [e.attempts for e in take(store, "ann/d").envelopes] == [3]
    assert store.write(recovery.isolate, ["gone"]) is False


def test_what_waits_beside_a_quarantined_one_takes_its_place(store: Driven) -> None:
    tasks(store, create(store, "d"), "a", "b")
    live(store, 3)
    live(store)
    assert marks(store) == {"a": (2, 0), "b": (1, 0)}


def test_a_recovery_whose_reply_was_lost_suspects_nothing_twice(store: Driven) -> None:
    tasks(store, create(store, "d"), "a")
    live(store)
    assert [store.write(recovery.recover, NOW, "process") for _ in range(3)] == [1, 0, 0]
    assert marks(store) == {"a": (1, 0)}


def test_after_a_death_in_quarantine_what_its_agent_does_next_is_quarantined_at_once(store: Driven) -> None:
    tasks(store, create(store, "bad"), "a", "b", "c")
    tasks(store, create(store, "good"), "x", "y")
    live(store, 3)
    store.write(recovery.isolate, ["a"])
    live(store)
    assert marks(store) == {"a": (2, 1), "b": (2, 0), "c": (2, 0), "x": (2, 0), "y": (1, 0)}


def test_a_process_that_was_closed_has_not_died(store: Driven) -> None:
    tasks(store, create(store, "d"), "a")
    live(store, 3)
    store.write(recovery.isolate, ["a"])
    store.write(recovery.retire)
    assert live(store) == 0
    assert marks(store) == {"a": (2, 0)}


def test_a_try_that_settles_clears_the_suspicion(store: Driven) -> None:
    tasks(store, create(store, "d"), "a")
    live(store, 3)
    store.write(recovery.isolate, ["a"])
    taken = take(store, "ann/d")
    [envelope] = taken.envelopes
    assert envelope.suspect == 3
    failed = Closing("run_1", envelope, taken.epoch, Verdict.RETRY, "", 1.0, 2.0, due=3.0)
    assert store.write(settlement.settle, (failed,))[0].taken
    assert marks(store) == {"a": (0, 1)}


def test_a_try_that_is_repeated_for_the_state_clears_the_suspicion(store: Driven) -> None:
    tasks(store, create(store, "d"), "a")
    live(store, 3)
    store.write(recovery.isolate, ["a"])
    taken = take(store, "ann/d")
    repeated = Closing("run_1", taken.envelopes[0], taken.epoch, Verdict.REPEATED, "", 1.0, 2.0)
    assert store.write(settlement.settle, (repeated,))[0].taken
    assert marks(store) == {"a": (0, 0)}


def test_what_has_left_quarantine_to_wait_is_not_blamed_for_what_is_inside(store: Driven) -> None:
    tasks(store, create(store, "d", max_concurrent_tasks=2), "a", "b")
    live(store, 3)
    store.write(recovery.isolate, ["a"])
    store.write(recovery.step_out, ["a", "b"])
    assert marks(store) == {"a": (4, 0), "b": (2, 0)}, "the other one was never inside"
    store.write(recovery.isolate, ["b"])
    live(store)
    assert marks(store) == {"a": (2, 0), "b": (2, 1)}
    store.write(recovery.isolate, ["a"])
    store.write(recovery.step_out, ["a"])
    live(store)
    assert marks(store) == {"a": (2, 1), "b": (2, 1)}, "with nobody inside it may have been this one"
    store.write(recovery.isolate, ["a"])
    store.write(recovery.step_out, ["a"])
    store.write(recovery.retire)
    assert live(store) == 0
    assert marks(store) == {"a": (2, 1), "b": (2, 1)}


def test_one_that_is_ended_from_outside_waits_in_quarantine_again(store: Driven) -> None:
    tasks(store, create(store, "d"), "a")
    live(store, 3)
    store.write(recovery.isolate, ["a"])
    taken = take(store, "ann/d")
    released = Closing("run_1", taken.envelopes[0], taken.epoch, Verdict.RELEASED, "", 1.0, 2.0)
    assert store.write(settlement.settle, (released,))[0].taken
    assert marks(store) == {"a": (2, 0)}


def test_of_a_talk_the_head_is_suspected(store: Driven, talk: str) -> None:
    first, second = post(store, "a", busy="queue"), post(store, "b", busy="queue")
    later = first.envelope.due + 1
    for number in range(4):
        store.write(recovery.recover, later, f"process {number}")
    head, tail = (p.envelope.envelope_id for p in (first, second))
    assert marks(store) == {head: (2, 0), tail: (1, 0)}
    assert [e.suspect for e in store.write(runs.claim, TALK).envelopes] == [2, 1]


def test_a_run_whose_worker_is_lost_counts_as_an_attempt_unless_another_is_to_blame(store: Driven, talk: str) -> None:
    posted = post(store, "a")
    for tried, tries in ((True, 1), (False, 1), (True, 2)):
        claimed = store.write(runs.claim, TALK)
        lost = closing(
            claimed.epoch,
            *claimed.envelopes,
            run_id=f"run_{tried}{tries}",
            verdict=Verdict.RETRY if tried else Verdict.RELEASED,
            lost=True,
        )
        settle(store, lost)
        assert marks(store) == {posted.envelope.envelope_id: (0, tries)}
