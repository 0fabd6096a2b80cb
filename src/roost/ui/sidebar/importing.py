"""Import of a talk: a button below the list of talks, and a dialog that receives a file."""

from __future__ import annotations

import streamlit as st

from roost.errors import RoostError
from roost.service import AgentService
from roost.ui import dialogs, page_url
from roost.ui.text import as_sentence

NAME = "Import"


def button() -> None:
    """Draw the button in the sidebar."""
    st.button("Import a talk", key="import_talk", type="tertiary", on_click=dialogs.show, args=(NAME,))


def dialog(service: AgentService, user: str) -> None:
    """Draw the dialog in each run of the page until a talk is imported or it is dismissed."""
    if dialogs.shown(NAME) is not None:
        _import(service, user)


@st.dialog("Import a talk", on_dismiss=dialogs.close)
def _import(service: AgentService, user: str) -> None:
    file = st.file_uploader("A talk that was exported as JSON", type=["json"], key="import_file")
    if file is None:
        return
    try:
        talk_id = service.import_talk(user, file.getvalue().decode())
    except UnicodeDecodeError:
        st.error("This file is not a text: choose one that was exported as JSON.")
        return
    except RoostError as error:
        st.error(as_sentence(error))
        return
    dialogs.close()
    page_url.open_talk(talk_id)
    st.rerun()
