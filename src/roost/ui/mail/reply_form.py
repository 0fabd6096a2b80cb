"""Form below a thread: a reply to the newest mail of the other end."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import streamlit as st

from roost.core.envelopes.mail import Mail
from roost.core.values.priority import Priority
from roost.ui.callbacks import uninterrupted
from roost.ui.mail import boxes
from roost.ui.shell import actions
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

PRIORITIES = [str(one) for one in Priority]


def draw(visit: Visit, mails: Sequence[Mail], end: str) -> None:
    """Draw the form; `end` is the mailbox that writes. What is typed stays when a mail arrives meanwhile."""
    mail = answered(mails, end)
    other = boxes.who(visit, mail.sender if mail.recipient == end else mail.recipient)
    own = "" if end == boxes.address(visit) else f" as {plain(boxes.who(visit, end))}"
    form = f"reply_{mail.thread_id}"
    text = f"{form}_text_{st.session_state.get(_sent(form), 0)}"
    with st.form(form, enter_to_submit=False):
        again = "Reply to" if mail.recipient == end else "Write again to"
        st.text_area(f"{again} {plain(other)}{own}", key=text)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            priority_choice(form, mail.priority)
            st.form_submit_button(
                "Send", key=f"{form}_send", type="primary", on_click=_send, args=(visit, mail, end, form, text)
            )


def priority_choice(form: str, usual: Priority) -> None:
    """Draw the choice of a priority; no menu, which would close when the page is drawn again."""
    st.segmented_control("Priority", PRIORITIES, default=str(usual), required=True, key=f"{form}_priority")


def answered(mails: Sequence[Mail], end: str) -> Mail:
    """Return the mail that a reply answers: the newest that this end received, else the newest that it sent."""
    received = [mail for mail in mails if mail.recipient == end]
    sent = [mail for mail in mails if mail.sender == end]
    return (received or sent or [*mails])[-1]


@uninterrupted
def _send(visit: Visit, mail: Mail, end: str, form: str, field: str) -> None:
    text, priority = (str(st.session_state.get(key) or "") for key in (field, f"{form}_priority"))

    def send() -> None:
        key = f"page_{hashlib.sha256(f'{mail.mail_id} {priority} {text}'.encode()).hexdigest()[:32]}"  # a double click
        visit.service.mail.reply(visit.user, mail.mail_id, text, sender=end, priority=priority, key=key)
        st.session_state[_sent(form)] = st.session_state.get(_sent(form), 0) + 1

    actions.act(send, done="Sent")


def _sent(form: str) -> str:
    """Return the key of the number of sent replies, which is in the key of the field: each begins in an empty one."""
    return f"{form}_sent"
