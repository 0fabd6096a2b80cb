"""Dead letters: what could not be handled, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.errors import RoostError
from roost.ui import kinds
from roost.ui.callbacks import once, uninterrupted
from roost.ui.design import components
from roost.ui.monitor.labels import FAULTS, fault
from roost.ui.shell import actions, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row, RowAction

PAGE = 50
FILTERS = ("agent", "kind", "fault")
COLUMNS = [
    Column("When"),
    Column("Kind"),
    Column("Agent"),
    Column("Error"),
    Column("Reason", "long"),
    Column("Attempts", "number"),
    Column("Run"),
]


def draw(visit: Visit) -> None:
    wanted = {name: value for name in FILTERS if (value := navigation.asked(name))}
    _filters(wanted)
    letters = visit.service.dead_letters.list(
        visit.user, **wanted, limit=PAGE + 1, before=navigation.asked(url_choice.BEFORE)
    )
    if letters:
        _buttons(visit, wanted)
    empty = "No dead letter matches." if wanted else "No dead letters: all work could be handled."
    rows = [_row(letter) for letter in letters[:PAGE]]
    retry, drop = visit.service.dead_letters.retry, visit.service.dead_letters.drop
    chosen = [
        RowAction("Retry", partial(_each, visit, retry, "Retried")),
        RowAction("Drop", partial(_each, visit, drop, "Dropped")),
    ]
    table.draw("letters", "Dead letters", COLUMNS, rows, empty=empty, actions=chosen)
    url_choice.pages(url_choice.BEFORE, letters[PAGE - 1].letter_id if len(letters) > PAGE else None)


def _row(letter: DeadLetter) -> Row:
    agent = letter.agent_id or ""
    return Row(
        letter.letter_id,
        (
            components.moment(letter.created),
            kinds.label(letter.kind),
            Cell(agent, navigation.url(Route.AGENTS, agent=agent)) if agent else "",
            Cell(fault(letter.fault), tone="bad"),
            letter.reason,
            str(letter.attempts),
            Cell("Open run", navigation.url(Route.RUNS, run=letter.run_id)) if letter.run_id else "",
        ),
    )


# --- filters -------------------------------------------------------------------------------------


def _filters(wanted: Mapping[str, str]) -> None:
    offered = {"": "Any kind", **{str(kind): kinds.label(kind) for kind in LetterKind}}
    faults = {"": "Any error", **FAULTS}
    if (own := wanted.get("fault", "")) not in faults:
        faults[own] = own
    clears = (url_choice.BEFORE,)
    with st.container(key="letter_filters", horizontal=True, vertical_alignment="bottom"):
        url_choice.search("Agent", "agent", "Any agent", icon=None, clears=clears)
        url_choice.choice("Kind", "kind", [*offered], offered, clears=clears)
        url_choice.choice("Error", "fault", [*faults], faults, clears=clears)


# --- actions -------------------------------------------------------------------------------------


def _buttons(visit: Visit, wanted: Mapping[str, str]) -> None:
    """Draw what can be done with all that match."""
    which = "all that match" if wanted else "all"
    with st.container(key="letter_actions", horizontal=True, vertical_alignment="center"):
        st.button(f"Retry {which}", key="retry_all", on_click=once(_retry_all), args=(visit, dict(wanted)))
        with st.popover(f"Drop {which}", key="drop_menu"):
            st.write("Dropped work is lost: it cannot be retried later.")
            arguments = (visit, dict(wanted))
            st.button(f"Drop {which}", key="drop_all", type="primary", on_click=once(_drop_all), args=arguments)


def _each(visit: Visit, act: Callable[[str, str], None], done: str, chosen: Sequence[str]) -> None:
    actions.each(partial(act, visit.user), chosen, lambda count: f"{done}: {count}.")


@uninterrupted
def _retry_all(visit: Visit, wanted: Mapping[str, str]) -> None:
    _told(lambda: f"Retried: {visit.service.dead_letters.retry_all(visit.user, **wanted)}.")


@uninterrupted
def _drop_all(visit: Visit, wanted: Mapping[str, str]) -> None:
    _told(lambda: f"Dropped: {visit.service.dead_letters.drop_all(visit.user, **wanted)}.")


def _told(call: Callable[[], str]) -> None:
    try:
        done = call()
    except RoostError as error:
        actions.report(error)
    else:
        actions.succeed(done)
