"""Mail of the user and of their agents: a mailbox, an open thread, or a new mail, as the URL says."""

from __future__ import annotations

import streamlit as st

from roost.errors import Invalid, NotFound, RoostError
from roost.ui.design import components
from roost.ui.mail import boxes, mail_list, new_mail, opened_thread
from roost.ui.shell import actions, frame, live, navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit

THREAD, WRITE = "thread", "write"


def page(visit: Visit) -> None:
    """Draw the page. Mail of an opened thread is marked as read first, so that it is not counted any more."""
    if navigation.asked(WRITE):
        frame.draw(visit, Route.MAIL, "New mail")
        actions.notices()
        new_mail.draw(visit)  # nothing of it changes while it is open
    elif thread_id := navigation.asked(THREAD):
        _thread(visit, thread_id)
    else:
        frame.draw(visit, Route.MAIL, actions=_write)
        live.draw(visit, lambda: mail_list.draw(visit))


def _thread(visit: Visit, thread_id: str) -> None:
    try:
        mails = opened_thread.read(visit, thread_id)
    except (NotFound, Invalid) as error:
        problem = error  # `error` ends with this block
        frame.draw(visit, Route.MAIL)
        live.draw(visit, lambda: _missing(problem))
    else:
        frame.draw(visit, Route.MAIL, mails[0].subject)
        live.draw(visit, lambda: opened_thread.draw(visit, mails))


def _missing(problem: RoostError) -> None:
    components.notice(problem)
    boxes.back_link()


def _write() -> None:
    box = boxes.named()
    to = {"to": box, **boxes.query()} if box else {}
    with st.container(key="write", width="content"):
        navigation.link(Route.MAIL, "Write", icon=False, write="1", **to)
