"""Runs: a list of them, or one."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from roost.core.values.ids import reference
from roost.ui.runs import one_run, run_list
from roost.ui.shell import frame, live, navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit

STYLE = Path(__file__).with_name("runs.css")


def page(visit: Visit) -> None:
    run_id = navigation.asked("run")
    st.html(STYLE)
    if run_id is None:
        frame.draw(visit, Route.RUNS)
        live.draw(visit, lambda: run_list.draw(visit))
    else:
        frame.draw(visit, Route.RUNS, f"Run {reference(run_id)}", _back)
        live.draw(visit, lambda: one_run.draw(visit, run_id))


def _back() -> None:
    navigation.link(Route.RUNS, "All runs", icon=False)
