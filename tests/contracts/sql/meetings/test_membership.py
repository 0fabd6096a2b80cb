"""Membership on every store: a person that is deleted leaves all meetings, and the others continue."""

from __future__ import annotations

from roost.core.meetings.log.bodies import Said
from roost.stores.sql.meetings import membership
from roost.stores.sql.meetings.outcomes import Received
from tests.contracts.conftest import Driven
from tests.contracts.sql.meetings.test_meetings import ANN, D, E, act, call, name, rows, running, settle, view


def leave(store: Driven, who: str = ANN) -> Received:
    left: Received = store.write(membership.leave_deleted, name(), who, "the account was deleted", 400.0)
    return left


def test_a_deleted_person_leaves_all_meetings_and_the_others_learn_why(store: Driven) -> None:
    meetings = running(store), call(store, D, E, by=ANN, topic="more").seated.meeting_id
    settle(store)
    left = leave(store)
    assert {e.address for e in left.posted} == {"ann/d", "ann/e"}
    for table in ("meetings", "meeting_log"):
        assert set(rows(store, table)) == {D, E}
    assert store.read(lambda tx: tx.read("SELECT key FROM timers WHERE address = :who", {"who": ANN})) == []
    settle(store)
    for meeting in meetings:
        one = view(store, D, meeting).participants[ANN]
        assert (str(one.status), one.reason) == ("left", "the account was deleted")
    act(store, meetings[0], Said("still here"), by=D)
    settle(store)
    assert [word.text for word in view(store, E, meetings[0]).words] == ["still here"]


def test_a_meeting_without_others_is_gone_with_its_person_and_a_second_call_changes_nothing(store: Driven) -> None:
    call(store)
    left = leave(store)
    assert (left.posted, left.changes) == ((), ())
    assert rows(store, "meetings") == rows(store, "meeting_log") == []
    assert leave(store) == left
