"""Lifecycle states of an agent: only moves of the table are possible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.agents.agent import MOVES, State, move, sources
from roost.errors import Conflict


@given(st.lists(st.sampled_from(State), max_size=50))
def test_random_moves_lead_only_along_the_table(wanted: list[State]) -> None:
    state = State.IDLE
    for after in wanted:
        if after in MOVES[state]:
            state = move(state, after, "d")
            assert state is after
        else:
            with pytest.raises(Conflict, match=f"'d' is {state} and cannot become {after}"):
                move(state, after, "d")


@pytest.mark.parametrize("after", State)
def test_sources_are_the_table_the_other_way_round(after: State) -> None:
    assert set(sources(after)) == {before for before in State if after in MOVES[before]}


def test_every_state_can_be_reached_and_left() -> None:
    assert set(MOVES) == set(State)
    assert set().union(*MOVES.values()) == set(State)
    assert all(MOVES.values())
