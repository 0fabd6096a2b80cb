"""Events: what was published, by name and time, and a form to publish one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import streamlit as st

from roost.core.envelopes.events import Event
from roost.core.values.priority import Priority
from roost.errors import Invalid
from roost.ui.callbacks import once, uninterrupted
from roost.ui.design import components
from roost.ui.monitor.ranges import RANGES
from roost.ui.shell import actions, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row
from roost.ui.text import parsed_json

PAGE = 50
DATA_SHOWN = 300
TIMES = {"": "Any time", **{name: f"In {one.words}" for name, one in RANGES.items()}}
COLUMNS = [
    Column("When"),
    Column("Event"),
    Column("Published by"),
    Column("Received by", "number"),
    Column("Data", "long"),
]


def draw(visit: Visit) -> None:
    clears = (url_choice.BEFORE,)
    with st.container(key="event_filters", horizontal=True, vertical_alignment="bottom"):
        name = url_choice.search("Name", "name", "orders.*", icon=None, clears=clears)
        within = url_choice.choice("Time", "within", [*TIMES], TIMES, clears=clears)
        with st.popover("Publish event", key="publish_menu"):
            _publish(visit)
    since = datetime.now(UTC) - timedelta(seconds=RANGES[within].seconds) if within in RANGES else None
    found = visit.service.events.history(
        visit.user, name=name or None, since=since, limit=PAGE + 1, before=navigation.asked(url_choice.BEFORE)
    )
    empty = "No event matches." if name or since else "No events yet. Agents and webhooks publish them, and so can you."
    table.draw("events", "Events", COLUMNS, [_row(visit, event) for event in found[:PAGE]], empty=empty)
    url_choice.pages(url_choice.BEFORE, found[PAGE - 1].event_id if len(found) > PAGE else None)


def _row(visit: Visit, event: Event) -> Row:
    data = "" if event.data is None else json.dumps(event.data, ensure_ascii=False)
    shown = data if len(data) <= DATA_SHOWN else f"{data[: DATA_SHOWN - 1]}…"
    return Row(
        event.event_id,
        (components.moment(event.created), event.name, publisher(visit, event.publisher), str(event.takers), shown),
    )


def publisher(visit: Visit, address: str) -> Cell | str:
    """Return a sender as a link, if it is an agent of the user."""
    kind, _, key = address.partition(":")
    owner, _, agent = key.rpartition("/")
    if kind == "agent" and owner == visit.user:
        return Cell(agent, navigation.url(Route.AGENTS, agent=agent))
    return "You" if address == f"user:{visit.user}" else address


# --- publishing ----------------------------------------------------------------------------------


def _publish(visit: Visit) -> None:
    st.text_input("Event name", key="event_name", placeholder="orders.new")
    st.text_area("Data as JSON", key="event_data", placeholder='{"order": 7}')
    st.selectbox("Priority", [*Priority], index=[*Priority].index(Priority.NORMAL), key="event_priority")
    st.button("Publish", key="publish_event", type="primary", on_click=once(_send), args=(visit,))


@uninterrupted
def _send(visit: Visit) -> None:
    text = str(st.session_state["event_data"]).strip()
    try:
        data = parsed_json(text, "the data is not JSON") if text else None
    except Invalid as error:
        return actions.report(error)
    name, priority = str(st.session_state["event_name"]).strip(), str(st.session_state["event_priority"])
    return actions.act(
        visit.service.events.publish, visit.user, name, data, priority=priority, done=f"Published {name}."
    )
