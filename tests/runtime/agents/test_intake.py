"""Number of envelopes of an awake agent: one that arrives again is counted once."""

from __future__ import annotations

from roost.runtime.agents.lanes.intake import Intake
from roost.runtime.agents.lanes.lane_queue import LaneQueue
from tests.runtime.agents.test_lane_queue import envelope


def test_an_envelope_that_arrives_again_fills_no_inbox() -> None:
    intake = Intake(LaneQueue())
    one, two = envelope("1", "lane", 1.0), envelope("2", "lane", 2.0)
    for _ in range(3):
        intake.put((one,))
    assert (intake.is_full(1), intake.is_full(2)) == (True, False)
    intake.accept(claimed=True, left=0, most=10)
    assert (intake.is_full(1), intake.is_full(2)) == (True, False)
    intake.put((one, two))
    assert (intake.is_full(2), intake.is_full(3)) == (True, False)
    for _ in range(3):
        intake.accept(claimed=False, left=0, most=10)
    assert (intake.depth, intake.is_full(2), intake.is_full(3)) == (2, True, False)


def test_envelopes_that_stay_in_the_store_count() -> None:
    intake = Intake(LaneQueue())
    intake.put((envelope("1", "lane", 1.0),))
    intake.accept(claimed=True, left=3, most=10)
    assert (intake.is_full(4), intake.is_full(5)) == (True, False)
