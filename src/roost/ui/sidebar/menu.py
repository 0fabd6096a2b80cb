"""Menu of each talk in the list, with dialogs to rename, to export and to delete it."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial

import streamlit as st

from roost.core.talks.talk import Talk
from roost.errors import NotFound, RoostError
from roost.service import AgentService
from roost.ui import dialogs, page_url
from roost.ui.design import components
from roost.ui.text import as_sentence

RENAME, EXPORT, DELETE = "Rename", "Export", "Delete"
_UNSAFE = re.compile(r"[^\w -]+")


def button(talk: Talk) -> None:
    """Draw the menu button; its label, for screen readers, names the talk."""
    talk_id = talk.talk_session_id
    st.menu_button(
        f"Menu of {components.title(talk)}",
        [RENAME, EXPORT, DELETE],
        key=f"menu_{talk_id}",
        type="tertiary",
        icon=":material/more_horiz:",
        on_click=_choose,
        args=(talk_id,),
    )


def dialog(service: AgentService, user: str) -> None:
    """Draw the chosen dialog in each run of the page until it is done or dismissed."""
    for choice, draw in {RENAME: _rename, EXPORT: _export, DELETE: _delete}.items():
        talk_id = dialogs.shown(choice)
        if talk_id is None:
            continue
        try:
            draw(service, service.get_session(user, talk_id))
        except NotFound:
            dialogs.close()  # deleted in another tab


def _choose(talk_id: str) -> None:
    dialogs.show(st.session_state[f"menu_{talk_id}"], talk_id)


@st.dialog("Rename this talk", on_dismiss=dialogs.close)
def _rename(service: AgentService, talk: Talk) -> None:
    with st.form("rename", border=False):
        title = st.text_input("Title", talk.title, key="title")
        if not st.form_submit_button("Save", type="primary"):
            return
    try:
        service.rename(talk.user_id, talk.talk_session_id, title.strip())
    except NotFound:
        pass  # the next run of the page reports it
    except RoostError as error:
        st.error(as_sentence(error))
        return
    dialogs.close()
    st.rerun()


@st.dialog("Export this talk", on_dismiss=dialogs.close)
def _export(service: AgentService, talk: Talk) -> None:
    """Offer both formats; a transcript is made when it is downloaded."""
    st.markdown(f"**{components.title(talk)}** as Markdown to read, or as JSON, which can be imported again.")
    name = _UNSAFE.sub(" ", talk.title).strip()[:60] or "talk"
    with st.container(horizontal=True):
        for label, form, ending in (("Markdown", "markdown", "md"), ("JSON", "json", "json")):
            st.download_button(
                label,
                partial(service.export_talk, talk.user_id, talk.talk_session_id, format=form),
                file_name=f"{name}.{ending}",
                key=f"export_{form}",
                on_click="ignore",
            )


@st.dialog("Delete this talk?", on_dismiss=dialogs.close)
def _delete(service: AgentService, talk: Talk) -> None:
    st.markdown(f"**{components.title(talk)}** will be deleted with all its messages. This can't be undone.")
    with st.container(horizontal=True):
        really = st.button("Delete", key="delete_really")
        kept = st.button("Cancel", key="delete_not")
    try:
        if really:
            _remove(service, talk)
    except RoostError as error:
        st.error(as_sentence(error))
        return
    if really or kept:
        dialogs.close()
        st.rerun()


def _remove(service: AgentService, talk: Talk) -> None:
    opened = page_url.opened()
    with suppress(NotFound):  # deleted in another tab
        if opened is not None and service.get_session(talk.user_id, opened).root == talk.root:
            page_url.start_new()
            st.session_state["deleted"] = opened  # the browser may still send its URL
        service.delete(talk.user_id, talk.talk_session_id)
