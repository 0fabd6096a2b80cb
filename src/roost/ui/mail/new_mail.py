"""Form for a new mail, or to forward one, as the URL says."""

from __future__ import annotations

import secrets

import streamlit as st

from roost.core.envelopes.mail import Mail
from roost.core.values.priority import Priority
from roost.errors import Invalid, NotFound
from roost.ui.callbacks import once, uninterrupted
from roost.ui.design import components
from roost.ui.mail import boxes, letter, opened_thread
from roost.ui.mail.reply_form import priority_choice
from roost.ui.shell import actions, navigation
from roost.ui.shell.visit import Visit

TO, FORWARD = "to", "forward"
_KEY = "new_mail_key"
_FIELDS = ("subject", "text")


def draw(visit: Visit) -> None:
    boxes.back_link()
    mail_id = navigation.asked(FORWARD)
    try:
        forwarded = None if mail_id is None else visit.service.mail.get(visit.user, mail_id)
    except NotFound as error:
        components.notice(error)
        return
    form = f"new_mail_{mail_id or ''}"
    with st.form(form, enter_to_submit=False):
        _fields(visit, form, forwarded)
        st.form_submit_button(
            "Forward" if forwarded else "Send",
            key=f"{form}_send",
            type="primary",
            on_click=once(_send),
            args=(visit, form, forwarded),
        )
    if forwarded:
        letter.draw(visit, forwarded, is_whole=False)


def _fields(visit: Visit, form: str, forwarded: Mail | None) -> None:
    asked = boxes.full(navigation.asked(TO) or "")
    offered = boxes.agents(visit)
    own = boxes.address(visit)
    options = [*offered, own] if asked in ("", own, *offered) else [*offered, own, asked]
    st.selectbox(
        "To",
        options,
        index=options.index(asked) if asked else None,
        format_func=lambda box: "Yourself" if box == own else boxes.label(box),
        placeholder="Choose an agent, or type an address such as agent:bob/d",
        accept_new_options=True,
        key=f"{form}_to",
    )
    if not forwarded:
        st.text_input("Subject", key=f"{form}_subject", max_chars=200)
    st.text_area("Note" if forwarded else "Text", key=f"{form}_text", height=160)
    priority_choice(form, forwarded.priority if forwarded else Priority.NORMAL)


@uninterrupted
def _send(visit: Visit, form: str, forwarded: Mail | None) -> None:
    given = {name: str(st.session_state.get(f"{form}_{name}") or "") for name in ("to", "subject", "text", "priority")}
    key = st.session_state.setdefault(_KEY, secrets.token_hex(16))  # a repeated try sends once

    def send() -> None:
        if not given["to"].strip():
            raise Invalid("choose a recipient")
        mail, user, to, priority = visit.service.mail, visit.user, boxes.full(given["to"]), given["priority"]
        if forwarded:
            end = opened_thread.own_end(visit, [forwarded])
            sent = mail.forward(user, forwarded.mail_id, to, given["text"], sender=end, priority=priority, key=key)
        else:
            sent = mail.send(user, to, given["subject"], given["text"], priority=priority, key=key)
        _show(visit, form, sent)

    actions.act(send, done="Sent")


def _show(visit: Visit, form: str, sent: str) -> None:
    """Open the thread of the mail, and empty the form."""
    st.session_state.pop(_KEY, None)
    for name in _FIELDS:
        st.session_state[f"{form}_{name}"] = ""
    thread_id = visit.service.mail.get(visit.user, sent).thread_id
    st.query_params.from_dict({"thread": thread_id} | boxes.query())
