"""Panel of the tour, for any page: an offer to build it, or links to its parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import streamlit as st

from roost.demos import tour
from roost.demos.tour_brains import BUYER, PLANNER, WATCHER
from roost.ui.shell import actions, navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

OFFER = (
    "New here? The tour builds a small roost with something to see on every page: three agents that plan, order and "
    "watch, a schedule, a standup, a game, mail, an approval that waits for you, and a failure to repair. It needs no "
    "key and no network."
)
REPAIR = f"Add a note to the memory of {WATCHER}: The key of the shed is under the mat. Then retry its dead letter."
COLUMNS = [Column("Look at"), Column("What to do there", "long")]
REMOVAL = "Removes the agents of the tour and all that they have made. Everything else stays."


@dataclass(frozen=True, slots=True)
class TourStop:
    """Part of the tour: a link, and what to do there."""

    route: Route
    label: str
    todo: str
    query: dict[str, str] = field(default_factory=dict)


def draw(visit: Visit, *, is_empty: bool) -> None:
    """Draw links to the tour if it is built; otherwise offer to build it, if the page is empty."""
    found = tour.find(visit.service, visit.user)
    if found.is_built:
        with st.container(key="tour", border=True):
            _links(visit, found)
    elif is_empty:
        with st.container(key="tour", border=True):
            _offer(visit)


def _offer(visit: Visit) -> None:
    st.header("Take the tour", anchor=False)
    st.markdown(OFFER)
    st.button(
        "Build the tour",
        key="build_tour",
        type="primary",
        icon=":material/explore:",
        on_click=actions.act,
        args=(tour.build, visit.service, visit.user),
        kwargs={"done": "The tour is built: its agents are at work."},
    )


def _links(visit: Visit, found: tour.Tour) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header("Tour", anchor=False)
        st.button(
            "Remove the tour",
            key="remove_tour",
            help=REMOVAL,
            on_click=actions.act,
            args=(tour.remove, visit.service, visit.user),
            kwargs={"done": "The tour is removed."},
        )
    known = {route for route, _ in navigation.shown()}
    rows = [_row(stop) for stop in _stops(found) if stop.route in known]
    table.draw("tour_stops", "Parts of the tour", COLUMNS, rows, empty="")


def _row(stop: TourStop) -> Row:
    href = navigation.url(stop.route, **stop.query)
    return Row(href, (Cell(stop.label, href), Cell(stop.todo)))


def _stops(found: tour.Tour) -> Iterator[TourStop]:
    if PLANNER in found.agents:
        yield TourStop(Route.AGENTS, PLANNER, "Reply to its mail: it sleeps, wakes and answers.", {"agent": PLANNER})
    if BUYER in found.agents:
        yield TourStop(Route.AGENTS, BUYER, "It waits for your approval, and works on meanwhile.", {"agent": BUYER})
        yield TourStop(
            Route.APPROVALS, "Approve an order", "Approve or decline it: the run continues, and you get mail."
        )
    if WATCHER in found.agents:
        about = "Its schedule gives it a task each minute." if found.schedule else "It watches the garden."
        yield TourStop(Route.AGENTS, WATCHER, about, {"agent": WATCHER})
        yield TourStop(Route.MONITOR, "Repair a failure", REPAIR, {"tab": "dead-letters"})
    if found.standup:
        yield TourStop(Route.MEETINGS, "Standup", "Read who said what, and the minutes.", {"meeting": found.standup})
    if found.game:
        yield TourStop(
            Route.MEETINGS, "Tic-tac-toe", "Watch two agents play, or look at the end.", {"meeting": found.game}
        )
    yield TourStop(Route.MAIL, "Mail", "Read the plan of the day, and reply to it.")
    yield TourStop(
        Route.RUNS, "Runs", "Open the plan of the day: its steps, questions and model call. Open the failed run."
    )
