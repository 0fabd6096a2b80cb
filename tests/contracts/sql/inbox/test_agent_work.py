"""A1, A4, A6, A12 on every store: how agents live there, who may reach them, and what can be seen of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roost.core.agents import wake
from roost.core.agents.agent import State
from roost.core.agents.agent_filter import AgentFilter
from roost.core.envelopes.effects import Publish, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.journal.steps import Attempt
from roost.core.limits.usage import Usage
from roost.core.runs import Closing, Verdict
from roost.core.values.priority import Priority
from roost.errors import Conflict, NotFound
from roost.stores.sql import mail, settlement, tasks
from roost.stores.sql.agents import agents, inspection, lifecycle, listing
from roost.stores.sql.inbox import in_progress
from roost.stores.sql.journal import steps
from roost.stores.sql.sending import effects
from roost.stores.sql.tables import envelopes, token_usage
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import LAST, create, numbers, pause, sleep, take

AT_NINE, AT_TEN = 1_000_000.0, 1_003_600.0


def change(after: State, cause: str = "asked for") -> StateChange:
    return StateChange(f"change_{next(numbers):09}", 2.0, None, after, cause, "user:ann")


def news(agent: str) -> Publish:
    name = f"event_{next(numbers):09}"
    return Publish(name, "ann", "agent.failed", {}, Priority.NORMAL, f"agent:ann/{agent}", 2.0, optional=True)


def given(store: Driven, address: str, name: str, key: str | None = None, **how: Any) -> Envelope:
    lane = how.pop("lane", name)
    envelope = Envelope(
        name, address, Kind.TASK, lane, Priority.NORMAL, "user:ann", "do it", 1.0, 1.0, recorded=True, **how
    )
    store.write(effects.post, SendTask(envelope, key))
    return envelope


def test_one_reaches_ones_own_and_those_that_are_shared(store: Driven) -> None:
    mine = create(store, "d", inbox_limit=7)
    shared, private = create(store, "e", user="bob", shared=True), create(store, "f", user="bob")
    for number in range(3):
        given(store, mine, f"task_{number}")
    config, waiting = store.read(agents.recipient, "ann", mine, False)
    assert (config.inbox_limit, waiting) == (7, 3)
    assert store.read(agents.recipient, "ann", shared, False)[1] == 0
    assert store.read(agents.recipient, "ann", private, True)[1] == 0, "a known agent may be answered"
    for key in (private, "ann/nobody"):
        with pytest.raises(NotFound, match="no agent"):
            store.read(agents.recipient, "ann", key, False)


def test_how_much_waits_is_counted_as_far_as_it_matters(store: Driven) -> None:
    full, empty = create(store, "d"), create(store, "e")
    for number in range(5):
        given(store, full, f"task_{number}")
    assert store.read(agents.depths, [full, empty], 3) == {full: 3, empty: 0}
    assert store.read(agents.depths, [full, empty], 100) == {full: 5, empty: 0}


def test_an_audience_is_those_of_the_owner_or_of_a_group_page_by_page(store: Driven) -> None:
    create(store, "a", groups=("red", "blue"))
    create(store, "b", groups=("red_and_more",))
    create(store, "c", groups=("red",))
    create(store, "d", user="bob", groups=("red",))
    sleep(store, "c", wake.event("never"))
    everyone = store.read(agents.audience, "ann", None, 100, "", False)
    assert [(name, str(state)) for name, state, _ in everyone] == [("a", "idle"), ("b", "idle"), ("c", "sleeping")]
    first, after = (
        store.read(agents.audience, "ann", None, 2, "", True),
        store.read(agents.audience, "ann", None, 2, "b", True),
    )
    assert [name for name, *_ in (*first, *after)] == ["a", "b", "c"]
    red = store.read(agents.audience, "ann", "red", 100, "", False)
    assert {name for name, _, config in red if "red" in config.groups} == {"a", "c"}, (
        "all that are in it are among them"
    )


def test_one_that_is_restarted_has_all_that_waits_and_who_had_it_writes_no_more(store: Driven) -> None:
    address = create(store, "d")
    given(store, address, "task_1")
    before = take(store, address)
    stopped, _ = store.write(lifecycle.restart, "ann", "d", change(State.STOPPED), change(State.IDLE))
    assert stopped
    closing = Closing("run_1", before.envelopes[0], before.epoch, Verdict.DONE, "", 1.0, 2.0)
    assert not store.write(settlement.settle, (closing,))[0].taken
    assert [e.envelope_id for e in take(store, address).envelopes] == ["task_1"]
    assert store.write(lifecycle.stop, "ann", "d", change(State.STOPPED), news("d")) is not None
    assert store.write(lifecycle.stop, "ann", "d", change(State.STOPPED), news("d")) is None, "it was stopped already"
    stopped, _ = store.write(lifecycle.restart, "ann", "d", change(State.STOPPED), change(State.IDLE))
    assert not stopped
    assert store.write(lifecycle.start, "ann", "d", change(State.IDLE)) is None, "it was not stopped"
    assert store.read(agents.get, "ann", "d").state == "idle"
    with pytest.raises(NotFound):
        store.write(lifecycle.restart, "bob", "d", change(State.STOPPED), change(State.IDLE))


def test_the_wake_condition_of_a_sleeping_agent_can_be_changed(store: Driven) -> None:
    address = create(store, "d")
    with pytest.raises(Conflict, match="not sleeping"):
        store.write(lifecycle.change_condition, "ann", "d", lambda condition: condition)
    sleep(store, "d", wake.at(AT_NINE))
    seen: list[wake.Condition] = []

    def later(condition: wake.Condition) -> wake.Condition:
        seen.append(condition)
        return wake.at(AT_TEN)

    assert store.write(lifecycle.change_condition, "ann", "d", later) == wake.at(AT_TEN)
    assert seen == [wake.at(AT_NINE)]
    given(store, address, "task_1")
    assert not take(store, address, AT_NINE + 1).ready
    assert store.read(agents.get, "ann", "d").state == "sleeping"
    assert take(store, address, AT_TEN).ready
    assert store.read(agents.get, "ann", "d").wake_reason == "time"
    assert not store.write(lifecycle.wake_now, "ann", "d", change(State.IDLE)), "it did not sleep"
    sleep(store, "d", wake.event("never"))
    assert store.write(lifecycle.wake_now, "ann", "d", change(State.IDLE, "asked for"))
    assert store.read(agents.get, "ann", "d").wake_reason == "asked for"


def test_who_waits_for_a_lower_load_is_known_until_it_waits_no_more(store: Driven) -> None:
    for name in ("d", "e", "f"):
        create(store, name)
    sleep(store, "d", wake.load_below(cpu=0.5))
    sleep(store, "e", wake.any_of(wake.at(AT_NINE), wake.load_below(cpu=0.2)))
    sleep(store, "f", wake.at(AT_NINE))
    assert store.read(agents.wanting_load, 10) == ["ann/d", "ann/e"]
    assert store.read(agents.wanting_load, 1) == ["ann/d"]
    store.write(lifecycle.wake_now, "ann", "d", change(State.IDLE))
    store.write(lifecycle.delete, "ann", "e")
    assert store.read(agents.wanting_load, 10) == []


def test_agents_are_found_by_what_is_in_their_ids_and_settings(store: Driven) -> None:
    create(store, "night-watch", description="looks after the doors")
    create(store, "day", description='says "100% sure"')
    create(store, "dawn_1")
    create(store, "watch", user="bob")

    def found(text: str, limit: int = 10, after: str = "") -> list[str]:
        return [one.agent_id for one in store.read(listing.listed, "ann", AgentFilter(text=text), limit, after)]

    assert found("WATCH") == ["night-watch"]
    assert found("doors") == ["night-watch"]
    assert found('"100% sure"') == ["day"]
    assert found("n_1") == ["dawn_1"], "what is a sign to a store is a letter here"
    assert found("nowhere") == []
    assert found("", limit=2) == ["dawn_1", "day"]
    assert found("", after="day") == ["night-watch"]


def test_all_about_an_agent_is_seen_by_its_owner(store: Driven) -> None:
    address = create(store, "d")
    first = given(store, address, "task_1")
    for number in (2, 3):
        given(store, address, f"task_{number}", lane="same")
    taken = take(store, address)
    done = Closing("run_1", replace(first, attempts=1), taken.epoch, Verdict.DONE, "did", 1.0, 2.0, state='{"a": 1}')
    assert store.write(settlement.settle, (done,))[0].taken
    seen = store.read(inspection.inspect, "ann", "d", 10)
    assert (seen.agent.agent_id, seen.turn_state, seen.memories) == ("d", '{"a": 1}', 0)
    assert dict(seen.lanes) == {"same": 2}
    assert [run.run_id for run in seen.runs] == ["run_1"]
    assert [one.cause for one in seen.changes] == ["created"]
    store.write(inspection.set_state, "ann", "d", '{"b": 2}')
    assert store.read(inspection.inspect, "ann", "d", 10).turn_state == '{"b": 2}'
    for op, more in ((inspection.inspect, 10), (inspection.set_state, "{}")):
        with pytest.raises(NotFound):
            store.write(op, "bob", "d", more)
    assert store.read(inspection.inspect, "ann", "d", 10).turn_state == '{"b": 2}'


def test_a_task_is_found_by_the_key_with_which_it_was_sent(store: Driven) -> None:
    first, second = create(store, "d"), create(store, "e")
    given(store, first, "task_1", key="k")
    given(store, second, "task_2", key="k")
    given(store, first, "task_3", key="k")
    assert store.read(tasks.by_key, "ann", "k", first, "do it") == "task_1"
    assert store.read(tasks.by_key, "ann", "k", second, "do it") == "task_2"
    assert store.read(tasks.by_key, "ann", "l", first, "do it") is None
    assert store.read(tasks.by_key, "bob", "k", first, "do it") is None
    with pytest.raises(Conflict, match="was used for another task"):
        store.read(tasks.by_key, "ann", "k", first, "do that")
    assert [task.task_id for task in store.read(tasks.listed, "ann", None, None, 10, LAST)] == ["task_2", "task_1"]
    assert [task.task_id for task in store.read(tasks.listed, "ann", first, "queued", 10, LAST)] == ["task_1"]
    assert store.read(tasks.listed, "ann", None, "done", 10, LAST) == []
    assert store.read(tasks.listed, "bob", None, None, 10, LAST) == []


def test_only_envelopes_that_have_not_begun_expire(store: Driven) -> None:
    """Agents that may work give up expired envelopes themselves."""
    works, stopped, paused, sleeps, strange = (create(store, name) for name in "abcde")
    store.write(lifecycle.stop, "ann", "b", change(State.STOPPED), news("b"))
    pause(store, "c", True)
    sleep(store, "d", wake.event("never"))
    store.write(agents.configure, "ann", "e", replace(store.read(agents.get, "ann", "e").config, profile="odd"), 2.0)
    everyone = [works, stopped, paused, sleeps, strange]
    for address in everyone:
        given(store, address, f"task_{address}", expires=10.0)
        given(store, address, f"later_{address}", expires=20.0)

    def expired(now: float) -> list[str]:
        found = store.read(envelopes.expired, everyone, now, lambda profile: profile != "odd")
        return sorted(envelope.envelope_id for envelope, _ in found)

    assert expired(9.0) == []
    assert expired(10.0) == [f"task_{address}" for address in (stopped, paused, sleeps, strange)]
    assert len(expired(20.0)) == 8
    assert store.read(envelopes.expired, [], 20.0, lambda _: True) == ()


def test_what_a_turn_sends_before_its_end_is_sent_once_and_by_who_still_may(store: Driven) -> None:
    address, other = create(store, "d"), create(store, "e")
    given(store, address, "task_1")
    epoch = take(store, address).epoch
    sent = tuple(
        SendTask(Envelope(f"env_{n}", other, Kind.TASK, "l", Priority.NORMAL, f"agent:{address}", "x", 1.0, 1.0))
        for n in (1, 2)
    )

    def send(epoch: int, task: str = "task_1") -> list[str] | None:
        place = Attempt(task, address, False, epoch, "run_1", "ann", "d", turn_input={"profile": "p"})
        posted = store.write(in_progress.post_now, place, 1, sent, ("message:a", "message:b"), 5.0)
        return None if posted is None else [envelope.envelope_id for envelope in posted]

    assert send(epoch + 1) is None
    assert send(epoch, "task_gone") is None
    assert send(epoch) == ["env_1", "env_2"]
    store.write(lambda tx: tx.write("DELETE FROM inbox WHERE envelope_id = 'env_1'"))  # it was done meanwhile
    assert send(epoch) == ["env_2"], "done again, it tells what is still there"
    kept = store.read(lambda tx: tx.read("SELECT envelope_id FROM inbox ORDER BY envelope_id"))
    assert [row[0] for row in kept] == ["env_2", "task_1"]
    assert [one.kind for one in store.read(steps.recorded, ["task_1"])] == ["given", "sent"]


def test_a_mailbox_is_its_owners(store: Driven) -> None:
    create(store, "d")
    assert store.read(mail.check_owner, "ann", "user:ann") is None
    assert store.read(mail.check_owner, "ann", "agent:ann/d") is None
    for box in ("user:bob", "agent:ann/nobody", "agent:bob/d", "d", ""):
        with pytest.raises(NotFound, match="no mailbox"):
            store.read(mail.check_owner, "ann", box)
    with pytest.raises(NotFound, match="no mailbox"):
        store.read(mail.check_owner, "bob", "agent:ann/d")


def test_tokens_are_counted_once_a_run_by_the_day_and_the_profile(store: Driven) -> None:
    address = create(store, "d")
    day = 86_400.0
    for number, (profile, ended) in enumerate([("p", 10.0), ("p", 20.0), ("q", 30.0), ("p", day + 1)]):
        name = f"task_{number}"
        given(store, address, name)
        taken = take(store, address)
        [envelope] = taken.envelopes
        closing = Closing(
            f"run_{number}", envelope, taken.epoch, Verdict.DONE, "", 1.0, ended, usage=Usage(7, 3), profile=profile
        )
        assert store.write(settlement.settle, (closing,))[0].taken
        assert not store.write(settlement.settle, (closing,))[0].taken, "and not once more"
    assert store.read(token_usage.tokens_used, "1970-01-01", "p") == 20
    assert store.read(token_usage.tokens_used, "1970-01-01", "q") == 10
    assert store.read(token_usage.tokens_used, "1970-01-02", "p") == 10
    assert store.read(token_usage.tokens_used, "1970-01-02", "nobody") == 0
