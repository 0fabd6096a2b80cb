"""State log of an awake agent: random moves leave a chain of legal changes, and illegal ones raise."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.agents.agent import MOVES, State
from roost.core.envelopes.outcomes import StateChange
from roost.errors import Conflict
from roost.hosts.simulated import SimulatedHost
from roost.runtime.agents.state_log import BRIEF, StateLog
from roost.testing.clock import Clock

AWAKE = (State.IDLE, State.ACTIVE, State.WAITING)
STEPS = st.tuples(
    st.sampled_from(State), st.sampled_from([0.0, 0.01, 2 * BRIEF]), st.sampled_from(["", "read", "take"])
)


class Owner:
    address = "ann/d"

    def record(self) -> None:
        """Nothing is written here."""


@given(st.lists(STEPS, max_size=40))
def test_random_moves_leave_a_chain_of_legal_changes(steps: list[tuple[State, float, str]]) -> None:
    clock = Clock()
    log = StateLog(SimulatedHost(0, clock=clock), Owner())
    taken: list[StateChange] = []
    for after, pause, then in steps:
        before = log.state
        if after not in MOVES[before]:
            with pytest.raises(Conflict, match=f"'ann/d' is {before} and cannot become {after}"):
                log.move(after, "test")
            assert log.state is before
        elif after in AWAKE:
            log.move(after, "test")
            assert log.state is after
        elif after is State.SLEEPING:
            change = log.asleep("agent:ann/d")
            assert (change.before, change.after) == (before, State.SLEEPING)
            assert log.state is before, "until the turn is settled"
        clock.advance(pause)
        if then == "read":
            log.pending()
        if then == "take":
            taken += log.take()
    taken += log.take()
    assert all(change.after in MOVES[State(str(change.before))] for change in taken)
    assert all(one.after == other.before for one, other in pairwise(taken))
    assert not taken or (taken[0].before, taken[-1].after) == (State.IDLE, log.state)
