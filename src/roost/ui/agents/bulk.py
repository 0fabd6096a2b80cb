"""Actions on the chosen agents of the list: pause, resume, delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from roost.service import AgentService
from roost.ui import dialogs
from roost.ui.agents import words
from roost.ui.callbacks import uninterrupted
from roost.ui.shell import actions
from roost.ui.shell.visit import Visit
from roost.ui.table.table import RowAction
from roost.ui.text import plain

NAME = "Delete agents"
NAMED = 10
"""Agents that the question names."""
_CHOSEN = "chosen_agents"
DONE = {"pause": "Paused", "resume": "Resumed", "delete": "Deleted"}


def actions_on(visit: Visit) -> list[RowAction]:
    """Return what can be done with the chosen agents of the table."""
    arguments = (visit.service, visit.user)
    return [
        RowAction("Pause", partial(apply, *arguments, "pause")),
        RowAction("Resume", partial(apply, *arguments, "resume")),
        RowAction("Delete", _ask),
    ]


def apply(service: AgentService, user: str, action: str, chosen: Sequence[str]) -> None:
    """Do it with each agent, and say with how many it was done and which were refused."""
    dialogs.close()
    actions.each(partial(getattr(service.agents, action), user), chosen, partial(sentence, action))


def sentence(action: str, count: int) -> str:
    return f"{DONE[action]} {count:,} agent{'' if count == 1 else 's'}."


def _ask(chosen: Sequence[str]) -> None:
    st.session_state[_CHOSEN] = tuple(chosen)
    dialogs.show(NAME)


def dialog(visit: Visit) -> None:
    """Draw the question in each run of the page until it is answered or dismissed."""
    if dialogs.shown(NAME) is not None:
        _question(visit)


@dialogs.dialog("Delete these agents?")
def _question(visit: Visit) -> None:
    chosen: tuple[str, ...] = st.session_state.get(_CHOSEN, ())
    names = ", ".join(f"**{plain(words.short(agent_id))}**" for agent_id in chosen[:NAMED])
    more = f" and {len(chosen) - NAMED} more" if len(chosen) > NAMED else ""
    st.markdown(f"{names}{more} will be deleted with their tasks, mail, talks and memories. This can't be undone.")
    with st.container(horizontal=True):
        arguments = (visit.service, visit.user, "delete", chosen)
        st.button("Delete", key="delete_really", on_click=uninterrupted(apply), args=arguments)
        st.button("Cancel", key="delete_not", on_click=dialogs.close)
