"""M4 on every store: what is received, written and sent, row by row, and when rows are deleted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from roost.core.agents.agent import AgentConfig, Invitations, State
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.lanes import is_post
from roost.core.envelopes.outcomes import StateChange
from roost.core.meetings.effects import EndTurn, WriteEntry
from roost.core.meetings.log.bodies import Body, Called, Ended, Joined, Left, Said
from roost.core.meetings.participants.participant_log import ParticipantLog
from roost.core.meetings.view.view import View
from roost.core.runs import Closing, Verdict
from roost.errors import Conflict, Forbidden, NotFound
from roost.stores.sql import retention, settlement
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.meetings import actions, receive, registry
from roost.stores.sql.meetings import registry as registry_sql
from roost.stores.sql.meetings.outcomes import ActionResult, Received
from roost.stores.sql.schedules import schedules
from roost.stores.sql.tables.envelopes import ENVELOPE, envelope_of
from tests.contracts.conftest import Driven

LAST = "\x7f"
ANN, D, E = "user:ann", "agent:ann/d", "agent:ann/e"
numbers = itertools.count(1)
NOBODY: frozenset[str] = frozenset()


def name() -> str:
    return f"post_{next(numbers):09}"


def create(store: Driven, agent: str, user: str = "ann", **config: Any) -> str:
    change = StateChange(f"change_{next(numbers):09}", 1.0, None, State.IDLE, "created", user)
    store.write(agents.create, user, (agent,), AgentConfig(**config), change, 100)
    return f"agent:{user}/{agent}"


def call(
    store: Driven, *required: str, by: str = ANN, key: str | None = None, topic: str = "news", **more: Any
) -> ActionResult:
    body = Called(topic, 10_000_000, required, **more)
    effect = WriteEntry(name(), by, f"meeting_{next(numbers):09}", body, key=key)
    acted: ActionResult = store.write(actions.call, effect, 100.0, NOBODY)
    return acted


def act(
    store: Driven, meeting: str, body: Body, by: str = ANN, user: str = "ann", key: str | None = None
) -> ActionResult:
    acted: ActionResult = store.write(actions.act, name(), user, by, meeting, lambda view: body, 200.0, key, NOBODY)
    return acted


def settle(store: Driven) -> list[Envelope]:
    """Hear all there is until nothing is left to hear; the turns that were posted."""
    while posts := [e for e in posted(store) if is_post(e)]:
        store.write(receive.receive_posts, name(), posts, (), 300.0, NOBODY)
    return posted(store)


def posted(store: Driven) -> list[Envelope]:
    rows = store.read(lambda tx: tx.read(f"SELECT {ENVELOPE} FROM inbox ORDER BY envelope_id"))
    return [envelope_of(row) for row in rows]


def view(store: Driven, who: str, meeting: str) -> View:
    seated: ParticipantLog = store.read(registry_sql.load_log, who, meeting)
    return seated.version.view


def rows(store: Driven, table: str) -> list[str]:
    found = store.read(lambda tx: tx.read(f"SELECT participant FROM {table} ORDER BY 1"))
    return [row[0] for row in found]


def running(store: Driven) -> str:
    create(store, "d")
    create(store, "e")
    meeting = call(store, D, E).seated.meeting_id
    settle(store)
    return meeting


def test_a_call_is_in_the_callers_log_and_in_the_inboxes_of_those_invited(store: Driven) -> None:
    create(store, "d")
    acted = call(store, D)
    assert [(e.address, e.sender, e.kind) for e in acted.posted] == [("ann/d", ANN, "meeting")]
    assert rows(store, "meeting_log") == [ANN]
    assert [e.envelope_id for e in posted(store)] == [e.envelope_id for e in acted.posted]
    [listed] = store.read(registry_sql.listed, "ann", None, None, 10, LAST)
    assert (listed.topic, listed.phase, listed.participant, listed.status) == ("news", "calling", ANN, "in")


def test_meetings_that_one_has_called_count_until_they_are_over(store: Driven) -> None:
    meeting = running(store)
    call(store, D)
    call(store, E, by=D)
    settle(store)
    assert [store.read(registry_sql.count_called, who) for who in (ANN, D, E)] == [2, 1, 0]
    act(store, meeting, Ended())
    assert store.read(registry_sql.count_called, ANN) == 1


def test_what_is_heard_leaves_the_inbox_and_is_answered_in_one_write(store: Driven) -> None:
    meeting = running(store)
    assert {str(view(store, who, meeting).phase) for who in (ANN, D, E)} == {"running"}
    assert view(store, D, meeting) == view(store, E, meeting) == view(store, ANN, meeting)
    assert settle(store) == []  # nobody has to be asked
    assert store.read(registry.meetings_of_agents, ["ann/d"]) == {"ann/d": (meeting,)}


def test_one_that_sleeps_or_is_stopped_hears_nothing_until_it_is_back(store: Driven) -> None:
    create(store, "d")
    change = StateChange(name(), 1.0, None, State.STOPPED, "asked", "ann")
    store.write(lifecycle.stop, "ann", "d", change, None)
    meeting = call(store, D).seated.meeting_id
    heard: Received = store.write(receive.receive_posts, name(), posted(store), (), 300.0, NOBODY)
    assert (heard.posted, heard.unready) == ((), ("ann/d",))
    assert len(posted(store)) == 1
    assert store.read(registry_sql.load_log, D, meeting) is None


def test_new_words_lead_to_one_turn_which_is_posted_again_only_when_it_is_over(store: Driven) -> None:
    meeting = running(store)
    act(store, meeting, Said("one"))
    first = settle(store)
    assert sorted(e.address for e in first) == ["ann/d", "ann/e"]
    act(store, meeting, Said("two"))
    assert settle(store) == first
    seated: ParticipantLog = store.read(registry_sql.load_log, D, meeting)
    [turn] = [e for e in first if e.address == "ann/d"]
    heard = EndTurn(name(), D, meeting, {**seated.version.view.seen, ANN: 3}, ())  # it knows of the first one only
    written = WriteEntry(name(), D, meeting, Said("well"))
    closing = Closing("", turn, 0, Verdict.DONE, "", 1.0, 1.0, sent=(written, heard))
    [settled] = store.write(settlement.settle, (closing,))
    assert settled.taken
    turns = [e for e in settled.posted if not is_post(e)]
    assert [e.envelope_id for e in turns] == [f"{meeting}:{D}:2"]
    assert [word.text for word in view(store, D, meeting).words] == ["one", "two", "well"]


def test_what_a_turn_writes_into_a_meeting_that_is_over_is_left_out_and_the_turn_ends(store: Driven) -> None:
    meeting = running(store)
    act(store, meeting, Said("one"))
    [turn] = [e for e in settle(store) if e.address == "ann/d"]
    act(store, meeting, Ended())
    settle(store)
    written = WriteEntry(name(), D, meeting, Said("but"))
    closing = Closing("", turn, 0, Verdict.DONE, "", 1.0, 1.0, sent=(written,))
    assert store.write(settlement.settle, (closing,))[0].taken
    assert [word.text for word in view(store, D, meeting).words] == ["one"]


def test_a_turn_that_failed_has_its_agent_leave(store: Driven) -> None:
    meeting = running(store)
    act(store, meeting, Said("one"))
    [turn] = [e for e in settle(store) if e.address == "ann/d"]
    failed = EndTurn(name(), D, meeting, None, (), "it failed: no model")
    closing = Closing("", turn, 0, Verdict.DEAD, "", 1.0, 1.0, "no model", "brain", sent=(failed,))
    store.write(settlement.settle, (closing,))
    settle(store)
    one = view(store, ANN, meeting).participants[D]
    assert (str(one.status), one.reason) == ("left", "it failed: no model")


def test_a_timer_is_fired_once_and_looks_at_the_meeting(store: Driven) -> None:
    create(store, "d")
    meeting = call(store, D).seated.meeting_id
    store.write(lambda tx: tx.write("DELETE FROM inbox"))  # it was lost
    assert store.read(schedules.next_due) is not None
    fired = store.write(schedules.fire, 20_000.0, name, lambda address, task_id: False)
    assert fired.meetings == ((ANN, meeting),)
    assert fired.looked == ()
    heard: Received = store.write(receive.receive_posts, name(), (), fired.meetings, 20_000.0, NOBODY)
    assert [change.phase for change in heard.changes] == ["failed"]  # the deadline has passed
    assert store.write(schedules.fire, 20_000.0, name, lambda address, task_id: False).meetings == ()


def test_entries_and_calls_with_a_key_are_written_once(store: Driven) -> None:
    create(store, "d")
    meeting = call(store, key="k").seated.meeting_id
    assert call(store, key="k").seated.meeting_id == meeting
    with pytest.raises(Conflict):
        call(store, key="k", topic="other")
    for _ in range(2):
        act(store, meeting, Said("hello"), key="w")
    assert [word.text for word in view(store, ANN, meeting).words] == ["hello"]
    with pytest.raises(Conflict):
        act(store, meeting, Said("other"), key="w")


def test_what_is_refused_changes_nothing(store: Driven) -> None:
    meeting = running(store)
    before = view(store, ANN, meeting)
    for body in (Joined(), Ended("x" * 10)):
        with pytest.raises(Forbidden):
            act(store, meeting, body, by=D)
    with pytest.raises(NotFound):
        act(store, meeting, Said("x"), by="user:bob", user="bob")
    with pytest.raises(NotFound):
        act(store, meeting, Said("x"), by=ANN, user="bob")
    assert view(store, ANN, meeting) == before
    assert posted(store) == []


def test_a_stranger_sees_nothing(store: Driven) -> None:
    meeting = running(store)
    for who in (None, ANN, D, "user:bob"):
        with pytest.raises(NotFound):
            store.read(registry_sql.find_for_user, "bob", meeting, who)
    assert store.read(registry_sql.listed, "bob", None, None, 10, LAST) == []
    with pytest.raises(NotFound):
        store.write(actions.join, name(), "bob", "user:bob", meeting, 1.0, NOBODY)


def test_meetings_that_one_attends_are_those_it_is_in_or_invited_to(store: Driven) -> None:
    create(store, "d")
    create(store, "e")
    first, second = (call(store, D, topic=topic) for topic in ("one", "two"))
    call(store, E, topic="without it")
    assert [one.topic for one in store.read(registry_sql.open_meetings, ANN)] == ["without it", "two", "one"]
    settle(store)
    assert [one.topic for one in store.read(registry_sql.open_meetings, D)] == ["two", "one"]
    act(store, first.seated.meeting_id, Ended())
    settle(store)
    assert [one.topic for one in store.read(registry_sql.open_meetings, D)] == ["two"]
    assert second.seated.meeting_id != first.seated.meeting_id


def test_lists_are_newest_first_and_each_meeting_once(store: Driven) -> None:
    create(store, "d", invitations=Invitations.ASK)
    ids = [call(store, D).seated.meeting_id for _ in range(3)] + [call(store, by=D).seated.meeting_id]
    settle(store)
    found = store.read(registry_sql.listed, "ann", None, None, 10, LAST)
    assert [(one.meeting_id, one.participant) for one in found] == [
        (meeting, who) for meeting, who in zip(reversed(ids), (D, ANN, ANN, ANN), strict=True)
    ]
    assert [one.meeting_id for one in store.read(registry_sql.listed, "ann", None, None, 2, ids[2])] == [ids[1], ids[0]]
    assert [one.status for one in store.read(registry_sql.listed, "ann", D, "calling", 10, LAST)] == ["invited"] * 3


def test_deleting_an_agent_deletes_its_rows_and_notifies_other_participants(store: Driven) -> None:
    meeting = running(store)
    told = store.write(lifecycle.delete, "ann", "d")
    assert {e.address for e in told.posted} == {"ann/e"}
    for table in ("meetings", "meeting_log"):
        assert D not in rows(store, table)
    assert str(view(store, ANN, meeting).participants[D].status) == "left"
    assert store.read(lambda tx: tx.read("SELECT key FROM timers WHERE address = :d", {"d": D})) == []


def test_of_what_is_over_and_old_the_minutes_are_left_and_then_nothing(store: Driven) -> None:
    meeting = running(store)
    act(store, meeting, Said("remember this"))
    going_on = call(store).seated.meeting_id
    act(store, meeting, Ended("we did"))
    settle(store)
    page = store.read(retention.old, "meeting_logs", 1_000.0, (), 100)
    assert sorted(page.keys) == [(D, meeting), (E, meeting), (ANN, meeting)]
    assert store.write(retention.remove, "meeting_logs", 1_000.0, page.keys) == 3
    assert set(rows(store, "meeting_log")) == {ANN}  # of the one that continues
    who, seated, minutes = store.read(registry_sql.find_for_user, "ann", meeting, None)
    assert (who, seated) == (ANN, None)
    assert "remember this" in minutes
    assert "we did" in minutes
    with pytest.raises(Forbidden, match="only its minutes are left"):
        act(store, meeting, Left())
    assert store.read(retention.old, "meeting_logs", 1_000.0, (), 100).keys == ()
    gone = store.read(retention.old, "meetings", 1_000.0, (), 100).keys
    assert store.write(retention.remove, "meetings", 1_000.0, gone) == 3
    assert [one.meeting_id for one in store.read(registry_sql.listed, "ann", None, None, 10, LAST)] == [going_on]


def test_meetings_are_listed_with_the_logs_of_the_user_and_of_their_agents(store: Driven) -> None:
    create(store, "f", "bob")
    meeting = running(store)
    own = store.read(registry.views, "ann", meeting)
    assert [log.participant for log in own] == [ANN, E, D]
    assert {str(log.version.view.phase) for log in own} == {"running"}
    [(summary, log)] = store.read(registry.overview, "ann", None, None, 10, LAST)
    assert (summary.meeting_id, log is not None and log.version.view) == (meeting, own[0].version.view)
    assert store.read(registry.overview, "ann", D, "ended", 10, LAST) == []
    with pytest.raises(NotFound):
        store.read(registry.views, "bob", meeting)
