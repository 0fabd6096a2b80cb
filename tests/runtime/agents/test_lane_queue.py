"""Order and priority in the lane queue of an agent: the most urgent lane first, and each lane in order."""

from __future__ import annotations

from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.values.priority import Priority
from roost.runtime.agents.lanes.lane_queue import LaneQueue


def envelope(name: str, lane: str, rank: float) -> Envelope:
    return Envelope(name, "ann/d", Kind.TASK, lane, Priority.NORMAL, "user:ann", "do", rank, rank)


def handled(desk: LaneQueue) -> list[str]:
    """Everything, one after the other."""
    done = []
    while (lane := desk.next()) is not None:
        lane.busy = True
        done.append(lane.waiting[0].envelope_id)
        lane.busy = False
        lane.popleft()
        desk.offer(lane)
    return done


def test_a_lane_in_which_much_waits_is_as_urgent_as_what_is_left_in_it() -> None:
    desk = LaneQueue()
    for name, lane, rank in (("1", "long", 10.0), ("2", "long", 30.0), ("3", "long", 50.0), ("4", "other", 20.0)):
        desk.put(envelope(name, lane, rank))
    desk.put(envelope("5", "third", 40.0))
    assert handled(desk) == ["1", "4", "2", "5", "3"]


def test_an_urgent_one_takes_those_before_it_in_its_lane_along() -> None:
    desk = LaneQueue()
    for name, lane, rank in (("1", "long", 50.0), ("2", "other", 20.0), ("3", "long", 10.0)):
        desk.put(envelope(name, lane, rank))
    assert handled(desk) == ["1", "3", "2"]
