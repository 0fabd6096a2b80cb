"""Memory of an agent: its `turn.state`, and the notes that it remembers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import streamlit as st

from roost.core.agents.agent import Agent
from roost.core.brain_data.memories import Memory
from roost.core.monitoring.health import Inspection
from roost.errors import Conflict, Invalid
from roost.ui import dialogs
from roost.ui.agents import words
from roost.ui.agents.forms import dialog_form
from roost.ui.agents.tabs.tasks_tab import text
from roost.ui.callbacks import uninterrupted
from roost.ui.design.components import moment
from roost.ui.shell import actions, navigation, url_choice
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row, RowAction
from roost.ui.text import parsed_json

EDIT, REMEMBER = "Edit the state", "Add a note"
SHOWN = 50
COLUMNS = [Column("Note", "long"), Column("Key"), Column("Stored")]
_BEFORE = "state_before_edit"


def draw(visit: Visit, seen: Inspection) -> None:
    agent = seen.agent
    shown = as_text(seen)
    text("State", shown)
    st.button("Edit", key=f"edit_state_{agent.agent_id}", on_click=_edit, args=(agent.agent_id, shown))
    _notes(visit, agent)
    if dialogs.shown(EDIT) == agent.agent_id:
        _state_form(visit, agent)
    if dialogs.shown(REMEMBER) == agent.agent_id:
        _note_form(visit, agent)


def as_text(seen: Inspection) -> str:
    return json.dumps(dict(seen.turn_state), indent=2, ensure_ascii=False)


# --- the state -----------------------------------------------------------------------------------------------


@uninterrupted
def _edit(agent_id: str, shown: str) -> None:
    st.session_state[_BEFORE] = shown
    dialog_form.show(EDIT, agent_id)


@dialogs.dialog(EDIT, width="medium")
def _state_form(visit: Visit, agent: Agent) -> None:
    dialog_form.problem()
    with st.form(dialog_form.key("state_form"), border=False, enter_to_submit=False):
        st.text_area("JSON object", st.session_state.get(_BEFORE, "{}"), key=dialog_form.key("state_text"), height=320)
        dialog_form.buttons("Save", "state_save", lambda: _save(visit, agent), "The state is saved.")


def _save(visit: Visit, agent: Agent) -> None:
    """Replace the state, unless the agent has changed it since the form was opened."""
    state = parsed_json(dialog_form.text("state_text"), "the state is no valid JSON")
    if not isinstance(state, dict):
        raise Invalid("the state must be a JSON object, such as {}")
    now = as_text(visit.service.agents.inspect(visit.user, agent.agent_id))
    if now != st.session_state.get(_BEFORE, now):
        st.session_state[_BEFORE] = now
        raise Conflict("the agent has changed its state meanwhile: save again to replace it")
    visit.service.agents.set_state(visit.user, agent.agent_id, state)


# --- notes ---------------------------------------------------------------------------------------------------


def _notes(visit: Visit, agent: Agent) -> None:
    st.html('<h3 class="roost-part">Notes</h3>')
    with st.container(horizontal=True, vertical_alignment="bottom", key="notes"):
        wanted = url_choice.search("Search notes", "find", "Words", clears=("before",))
        st.button(
            "Add a note",
            key=f"add_note_{agent.agent_id}",
            on_click=dialog_form.show,
            args=(REMEMBER, agent.agent_id),
        )
    before = navigation.asked("before")
    found = visit.service.agents.memories(visit.user, agent.agent_id, wanted, limit=SHOWN + 1, before=before)
    shown = found[:SHOWN]
    empty = "No notes have these words." if wanted else "It remembers nothing yet."
    forget = RowAction("Forget", partial(_forget, visit, agent.agent_id))
    rows = [_row(note) for note in shown]
    table.draw(f"memories_{agent.agent_id}", "Notes", COLUMNS, rows, empty=empty, actions=[forget])
    url_choice.pages("before", shown[-1].key if len(found) > SHOWN else None)


def _row(note: Memory) -> Row:
    return Row(note.key, (Cell(words.short(note.text, 300), title=note.text), note.key, moment(note.created)))


def _forget(visit: Visit, agent_id: str, keys: Sequence[str]) -> None:
    forget = partial(visit.service.agents.forget, visit.user, agent_id)
    actions.each(forget, keys, lambda count: f"Forgot {count} note{'' if count == 1 else 's'}.")


@dialogs.dialog(REMEMBER)
def _note_form(visit: Visit, agent: Agent) -> None:
    dialog_form.problem()
    with st.form(dialog_form.key("note_form"), border=False, enter_to_submit=False):
        st.text_area("Note", key=dialog_form.key("note_text"), height=120)
        st.text_input("Key", key=dialog_form.key("note_key"), placeholder="Optional; replaces the note under this key")
        dialog_form.buttons("Add", "note_add", lambda: _remember(visit, agent), "It remembers this now.")


def _remember(visit: Visit, agent: Agent) -> None:
    key = dialog_form.text("note_key") or None
    visit.service.agents.remember(visit.user, agent.agent_id, dialog_form.text("note_text"), key=key)
