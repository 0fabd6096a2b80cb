"""Mail of the user: the number of unread mails in the sidebar, and a dialog to read and to answer them."""

from __future__ import annotations

from html import escape

import streamlit as st

from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.values.addresses import shortened
from roost.errors import RoostError, public
from roost.service import AgentService
from roost.ui import dialogs
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.text import plain

NAME = "Mail"
SHOWN = 30
MORE = 100
MOST = 900
"""Mails that the dialog shows."""


def button(unread: int) -> None:
    """Draw the button in the sidebar."""
    label = "Mail" if not unread else f"Mail · {unread} unread"
    st.button(label, key="mail_unread" if unread else "mail", width="stretch", on_click=dialogs.show, args=(NAME,))


def dialog(service: AgentService, user: str) -> None:
    """Draw the dialog in each run of the page until it is dismissed."""
    if dialogs.shown(NAME) is not None:
        _mailbox(service, user)


@st.dialog(NAME, width="medium", on_dismiss=dialogs.close)
def _mailbox(service: AgentService, user: str) -> None:
    if problem := st.session_state.pop("mail_problem", ""):
        components.notice(problem)
    shown = int(st.session_state.get("mails_shown", SHOWN))
    try:
        mails = service.mail.inbox(user, newest=True, limit=shown + 1)
    except RoostError as error:
        components.notice(public(error))
        return
    if not mails:
        st.caption("No mail. Agents write to you here, for example when a task is done.")
    for mail in mails[:shown]:
        _row(service, user, mail)
    if len(mails) > shown < MOST:
        st.button("Older mail", key="older_mail", type="tertiary", on_click=_show_older, args=(shown,))
    elif len(mails) > shown:
        st.caption("Older mail: archive some of these, or run `roost mail ls` in a terminal.")


def _show_older(shown: int) -> None:
    st.session_state["mails_shown"] = min(shown + MORE, MOST)


def _row(service: AgentService, user: str, mail: Mail) -> None:
    mark = ":green[●] " if mail.status is MailStatus.UNREAD else ""
    sender = plain(shortened(mail.sender, user))
    with st.container(key=f"mail_row_{mail.mail_id}", gap=None):
        st.button(
            f"{mark}**{plain(mail.subject) or 'No subject'}** :gray[{sender}, {components.moment(mail.created)}]",
            key=f"mail_open_{mail.mail_id}",
            type="tertiary",
            on_click=_open,
            args=(service, user, mail.mail_id),
        )
        if dialogs.shown(NAME) == mail.mail_id:
            st.html(f'<div class="roost-mail" tabindex="0">{escape(mail.body)}</div>')
            _reply(service, user, mail)


@uninterrupted
def _open(service: AgentService, user: str, mail_id: str) -> None:
    is_open = dialogs.shown(NAME) == mail_id
    dialogs.show(NAME, "" if is_open else mail_id)
    try:
        service.mail.read(user, mail_id)
    except RoostError as error:
        st.session_state["mail_problem"] = public(error)


def _reply(service: AgentService, user: str, mail: Mail) -> None:
    with st.form(f"mail_form_{mail.mail_id}", border=False, clear_on_submit=True, enter_to_submit=False):
        st.text_area("Reply", key=f"mail_reply_{mail.mail_id}", placeholder="Reply", label_visibility="collapsed")
        with st.container(horizontal=True):
            st.form_submit_button(
                "Reply", key=f"mail_send_{mail.mail_id}", on_click=_answer, args=(service, user, mail.mail_id)
            )
            st.form_submit_button(
                "Archive", key=f"mail_archive_{mail.mail_id}", on_click=_archive, args=(service, user, mail.mail_id)
            )


@uninterrupted
def _answer(service: AgentService, user: str, mail_id: str) -> None:
    text = str(st.session_state.get(f"mail_reply_{mail_id}", ""))
    try:
        service.mail.reply(user, mail_id, text)
        dialogs.show(NAME)
    except RoostError as error:
        st.session_state["mail_problem"] = public(error)


@uninterrupted
def _archive(service: AgentService, user: str, mail_id: str) -> None:
    try:
        service.mail.archive(user, mail_id)
    except RoostError as error:
        st.session_state["mail_problem"] = public(error)
