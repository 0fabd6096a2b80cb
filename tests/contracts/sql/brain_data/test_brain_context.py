"""B2 on every store: what brains note for themselves is written with the end of a turn, and gone with its owner."""

from __future__ import annotations

from typing import Any

from roost.core.agents.agent import AgentConfig, State
from roost.core.brain_data.brain_context import ContextEntry, ContextKey, ContextWrite, Scope
from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.talks.runs import Posted
from roost.core.values.ids import encode
from roost.core.values.priority import Priority
from roost.ports import ClaimEnvironment, ClaimRequest
from roost.stores.sql import retention, settlement
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.brain_data import brain_context
from roost.stores.sql.inbox import claims
from roost.stores.sql.sending import effects
from roost.stores.sql.talks import messages, talks
from tests.contracts.conftest import Driven

TALK = ContextKey("talk_1", "", "ann")


def read(store: Driven, place: ContextKey = TALK, app: str = "app", limit: int = 10) -> tuple[list[ContextEntry], Any]:
    entries, values = store.read(brain_context.read, place, app, limit)
    return entries, {str(scope): named for scope, named in values.items() if named}


def write(store: Driven, run: str, place: ContextKey = TALK, **values: dict[str, str]) -> None:
    scoped = {Scope(scope): named for scope, named in values.items()}
    store.write(brain_context.write, (ContextWrite(place, "app", ContextEntry(run, f'["{run}"]', (1,)), scoped),))


def test_the_newest_entries_come_in_order(store: Driven) -> None:
    for run in ("run_2", "run_1", "run_3"):
        write(store, run)
    assert read(store, limit=2) == (
        [ContextEntry("run_2", '["run_2"]', (1,)), ContextEntry("run_3", '["run_3"]', (1,))],
        {},
    )


def test_the_same_turn_is_written_once(store: Driven) -> None:
    write(store, "run_1")
    write(store, "run_1")
    assert len(read(store)[0]) == 1


def test_values_belong_to_the_talk_to_the_user_or_to_all(store: Driven) -> None:
    write(store, "run_1", own={"a": "1", "b": "2"}, user={"a": '"u"'}, app={"a": "[]"})
    write(store, "run_2", own={"a": "3"})
    assert read(store)[1] == {"own": {"a": "3", "b": "2"}, "user": {"a": '"u"'}, "app": {"a": "[]"}}
    assert read(store, ContextKey("talk_2", "", "ann"))[1] == {"user": {"a": '"u"'}, "app": {"a": "[]"}}
    assert read(store, ContextKey("talk_3", "", "bob"))[1] == {"app": {"a": "[]"}}
    assert read(store, app="other")[1] == {"own": {"a": "3", "b": "2"}}


def test_what_is_too_old_goes_but_of_talks_it_goes_with_the_talk(store: Driven) -> None:
    lane = ContextKey("ann/d", "from:x", "ann")
    for place in (TALK, lane):
        for time in (1_000, 3_000):
            write(store, f"run_{encode(time * 1_000, 5)}", place)
    page = store.read(retention.old, "diary", 2_000.0, (), 10)
    assert page.keys == (("ann/d", "from:x", f"run_{encode(1_000_000, 5)}"),)
    assert store.write(retention.remove, "diary", 2_000.0, page.keys) == 1
    assert [len(read(store, place)[0]) for place in (TALK, lane)] == [2, 1]


def test_it_is_written_with_the_answer_and_gone_with_the_talk(store: Driven) -> None:
    store.write(talks.create, "talk_1", "ann", "helper", "interrupt", "", "{}", 10)
    posted: Posted = store.write(messages.post, "ann", "talk_1", "hi", None, None, "hi", "env_1", 0.0, 10)
    written = ContextWrite(
        TALK, "app", ContextEntry("run_1", "[]", (1,)), {Scope.OWN: {"a": "1"}, Scope.USER: {"b": "2"}}
    )
    done = (0, Verdict.DONE, "hello", 1.0, 2.0)
    closing = Closing("run_1", posted.envelope, *done, brain_context=written, answer=AnswerEnd())
    store.write(settlement.settle, (closing,))
    assert read(store) == ([ContextEntry("run_1", "[]", (1,))], {"own": {"a": "1"}, "user": {"b": "2"}})
    store.write(talks.delete, "ann", "talk_1")
    assert read(store) == ([], {"user": {"b": "2"}})


def test_of_an_agent_it_is_written_with_the_try_and_gone_with_the_agent(store: Driven) -> None:
    change = StateChange("change_1", 1.0, None, State.IDLE, "created", "ann")
    store.write(agents.create, "ann", ("d",), AgentConfig(), change, 10)
    envelope = Envelope("task_1", "ann/d", Kind.TASK, "from:x", Priority.NORMAL, "user:ann", "do", 1.0, 1.0)
    store.write(effects.post_all, (SendTask(envelope),), 1.0)
    taken = store.write(claims.claim, (ClaimRequest("ann/d", True),), ClaimEnvironment(2.0, lambda: "change_2"))[0]
    place = ContextKey("ann/d", "from:x", "ann")
    written = ContextWrite(place, "app", ContextEntry("run_1", "[]"), {Scope.OWN: {"a": "1"}})
    closing = Closing("run_1", envelope, taken.epoch, Verdict.DONE, "done", 1.0, 2.0, brain_context=written)
    store.write(settlement.settle, (closing,))
    assert read(store, place) == ([ContextEntry("run_1", "[]")], {"own": {"a": "1"}})
    assert read(store, ContextKey("ann/d", "from:y", "ann")) == ([], {})
    store.write(lifecycle.delete, "ann", "d")
    assert read(store, place) == ([], {})
