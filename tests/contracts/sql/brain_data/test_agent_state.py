"""A11 on every store: a change of an agent's state is written on the values that it was made from, or not at all."""

from __future__ import annotations

from dataclasses import replace

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import StateWrite
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.stores.sql import settlement
from roost.stores.sql.agents import inspection
from roost.stores.sql.sending import effects
from roost.stores.sql.talks import messages, talks
from tests.contracts.conftest import Driven
from tests.contracts.sql.agents.test_agents import given_task, rows
from tests.contracts.sql.test_events import create, take


def three(store: Driven, address: str) -> tuple[int, list[Envelope]]:
    """An epoch, and three tasks that have begun."""
    taken, first = given_task(store, address)
    others = [replace(first, envelope_id=f"task_{number}", lane=f"task_{number}") for number in (2, 3)]
    for envelope in others:
        store.write(effects.post, SendTask(envelope))
    return taken.epoch, [first, *others]


def closing(number: int, envelope: Envelope, epoch: int, before: str | None, after: str) -> Closing:
    return Closing(f"run_{number}", envelope, epoch, Verdict.DONE, "", 1.0, 2.0, state_before=before, state=after)


def state_of(store: Driven) -> object:
    return rows(store, "SELECT memory FROM agents")[0][0]


def test_a_turn_made_from_other_values_is_refused_and_not_counted(store: Driven) -> None:
    address = create(store, "d")
    epoch, (first, second, third) = three(store, address)
    tries = (
        closing(1, first, epoch, None, '{"n": 1}'),
        closing(2, second, epoch, None, '{"n": 1}'),
        closing(3, third, epoch, None, '{"m": 1}'),
    )
    assert [one.taken for one in store.write(settlement.settle, tries)] == [True, False, True]
    assert state_of(store) == '{"n": 1, "m": 1}'
    take(store, address)
    [[attempts]] = rows(store, f"SELECT attempts FROM inbox WHERE envelope_id = '{second.envelope_id}'")
    assert attempts == 0
    assert rows(store, "SELECT outcome FROM runs WHERE run_id = 'run_2'") == [("stopped",)]


def test_what_a_person_has_edited_is_not_overwritten(store: Driven) -> None:
    address = create(store, "d")
    epoch, (first, second, _) = three(store, address)
    assert store.write(settlement.settle, (closing(1, first, epoch, None, '{"n": 1}'),))[0].taken
    store.write(inspection.set_state, "ann", "d", '{"n": 10}')
    assert not store.write(settlement.settle, (closing(2, second, epoch, '{"n": 1}', '{"n": 2}'),))[0].taken
    assert state_of(store) == '{"n": 10}'


def test_changes_of_talks_come_in_order_with_the_ends_of_turns(store: Driven) -> None:
    address = create(store, "d")
    epoch, (first, second, _) = three(store, address)
    write = StateWrite("env_1", -1, '{"n": 1}', '{"n": 2}', '["{}", "{}"]', address, epoch, position=1)
    tries = (closing(1, first, epoch, None, '{"n": 1}'), closing(2, second, epoch, '{"n": 2}', '{"n": 3}'))
    assert [one.taken for one in store.write(settlement.settle, tries, (), (write,))] == [True, True]
    assert state_of(store) == '{"n": 3}'
    assert rows(store, "SELECT step, result FROM steps WHERE kind = 'memory'") == [(-1, '["{}", "{}"]')]
    again = StateWrite("env_1", 0, '{"n": 3}', '{"n": 2}', None, address, epoch)
    store.write(settlement.settle, (), (), (again,))
    assert state_of(store) == '{"n": 2}'
    assert rows(store, "SELECT step FROM steps WHERE kind = 'memory'") == []


def test_a_change_of_a_talk_is_combined_with_what_is_there_and_refused_to_a_stranger(store: Driven) -> None:
    address = create(store, "d")
    epoch, (first, _, _) = three(store, address)
    assert store.write(settlement.settle, (closing(1, first, epoch, None, '{"n": 5}'),))[0].taken
    write = StateWrite("env_1", -1, '{"n": 1}', '{"n": 2}', "[]", address, epoch)
    store.write(settlement.settle, (), (), (write,))
    assert state_of(store) == '{"n": 6}'
    store.write(settlement.settle, (), (), (replace(write, epoch=epoch - 1),))
    assert state_of(store) == '{"n": 6}'


def turn_of_talk(store: Driven, address: str, agent_epoch: int, number: int = 1) -> Closing:
    """The end of a talk's turn that has changed the agent's state."""
    talk = f"talk_{number}"
    store.write(talks.create, talk, "ann", "echo", "queue", "", "{}", 10, address)
    posted = store.write(messages.post, "ann", talk, "hi", None, None, "hi", f"env_{number}", 0.0, 10)
    return Closing(
        f"run_{number}",
        posted.envelope,
        posted.epoch,
        Verdict.DONE,
        "done",
        1.0,
        2.0,
        state='{"n": 7}',
        answer=AnswerEnd(),
        agent_epoch=agent_epoch,
    )


def test_a_turn_of_a_talk_changes_the_state_of_its_agent(store: Driven) -> None:
    address = create(store, "d")
    taken = take(store, address)
    [settled] = store.write(settlement.settle, (turn_of_talk(store, address, taken.epoch),))
    assert settled.taken
    assert state_of(store) == '{"n": 7}'


def test_a_turn_of_a_talk_whose_agent_was_taken_over_changes_nothing_and_runs_again(store: Driven) -> None:
    address = create(store, "d")
    old = take(store, address)
    stale = turn_of_talk(store, address, old.epoch)
    new = take(store, address)
    task = given_task(store, address)[1]
    store.write(settlement.settle, (closing(9, task, take(store, address).epoch, None, '{"n": 1}'),))
    current = turn_of_talk(store, address, new.epoch + 2, number=2)
    [refused, other] = store.write(settlement.settle, (stale, replace(current, state='{"m": 2}')))
    assert not refused.taken
    assert refused.talk.superseded
    assert [e.envelope_id for e in refused.talk.left] == ["env_1"]
    assert rows(store, "SELECT content FROM messages WHERE talk_id = 'talk_1' AND sender = 'agent'") == []
    assert rows(store, "SELECT outcome FROM runs WHERE run_id = 'run_1'") == [("stopped",)]
    assert other.taken
    assert state_of(store) == '{"n": 1, "m": 2}'


def test_a_turn_of_a_talk_that_leaves_its_agent_alone_is_not_refused(store: Driven) -> None:
    address = create(store, "d")
    stale = replace(turn_of_talk(store, address, take(store, address).epoch), state=None)
    take(store, address)
    [settled] = store.write(settlement.settle, (stale,))
    assert settled.taken
