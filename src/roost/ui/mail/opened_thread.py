"""A thread, from either end: its mails with what became of each, a form to reply, and the way to forward one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import streamlit as st

from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.talks.messages import MOST
from roost.errors import RoostError
from roost.ui.callbacks import uninterrupted
from roost.ui.mail import boxes, letter, reply_form
from roost.ui.shell import actions, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

SHOWN = 50
EARLIER, WHOLE = "earlier", "whole"


def read(visit: Visit, thread_id: str) -> list[Mail]:
    """Return the shown end of a thread, with one more mail if there are earlier ones.

    Mail to the user that is shown is marked as read, mail to agents is as they have read it. Raises NotFound.
    """
    found = _newest(visit, thread_id, _wanted() + 1)
    shown = {mail.mail_id for mail in _shown(found)}
    own = boxes.address(visit)
    return [
        visit.service.mail.read(visit.user, mail.mail_id)
        if mail.recipient == own and boxes.is_unread(mail) and mail.mail_id in shown
        else mail
        for mail in found
    ]


def draw(visit: Visit, mails: Sequence[Mail]) -> None:
    end = own_end(visit, mails)
    _links(visit, mails, end)
    shown = _shown(mails)
    if len(mails) > len(shown):
        query = st.query_params.to_dict() | {EARLIER: str(len(shown) + SHOWN)}
        navigation.link(Route.MAIL, "Show earlier mails", icon=False, **query)
    with st.container(key="thread"):
        for mail in shown:
            _mail(visit, mail)
    reply_form.draw(visit, mails, end)


def own_end(visit: Visit, mails: Sequence[Mail]) -> str:
    """Return the mailbox from which one writes: that of the URL, one's own, or that of an agent in the thread."""
    ends = [end for mail in reversed(mails) for end in (mail.recipient, mail.sender)]
    own = boxes.address(visit)
    for end in (boxes.address(visit, boxes.named()), own):
        if end in ends:
            return end
    return next((end for end in ends if end.startswith(f"{boxes.AGENT}{visit.user}/")), own)


def _newest(visit: Visit, thread_id: str, count: float) -> list[Mail]:
    found: list[Mail] = []
    before: str | None = None
    while len(found) < count:
        wanted = int(min(count - len(found), MOST))
        page = visit.service.mail.thread(visit.user, thread_id, limit=wanted, before=before)
        found = page + found
        if len(page) < wanted:
            break
        before = page[0].mail_id
    return found


def _wanted() -> int:
    """Return the number of mails to show, as the URL says."""
    wanted = navigation.asked(EARLIER) or ""
    return (int(wanted) if wanted.isdecimal() and len(wanted) < 9 else 0) or SHOWN


def _shown(mails: Sequence[Mail]) -> Sequence[Mail]:
    return mails[-_wanted() :]


def _links(visit: Visit, mails: Sequence[Mail], end: str) -> None:
    ends = {who for mail in mails for who in (mail.sender, mail.recipient)}
    start = f"{boxes.AGENT}{visit.user}/"
    with st.container(key="thread_links", horizontal=True, vertical_alignment="center"):
        boxes.back_link()
        for agent_id in sorted(one.removeprefix(start) for one in ends if one.startswith(start)):
            if "/" not in agent_id:
                navigation.link(Route.AGENTS, f"Agent {plain(agent_id)}", agent=agent_id)
        if _received(mails, end):
            args = (visit, mails[0].thread_id, end)
            st.button("Archive", key="archive_thread", icon=":material/archive:", on_click=_archive, args=args)


def _received(mails: Sequence[Mail], end: str) -> list[str]:
    """Return the mails to this mailbox that are not archived."""
    return [mail.mail_id for mail in mails if mail.recipient == end and mail.status is not MailStatus.ARCHIVED]


@uninterrupted
def _archive(visit: Visit, thread_id: str, end: str) -> None:
    try:
        received = _received(_newest(visit, thread_id, math.inf), end)
    except RoostError as error:
        actions.report(error)
        return
    archive = partial(visit.service.mail.archive, visit.user)
    if actions.each(archive, received, lambda count: f"Archived {count} mail{'' if count == 1 else 's'}."):
        url_choice.show(thread=None, **{EARLIER: None, WHOLE: None})


def _mail(visit: Visit, mail: Mail) -> None:
    with st.container(key=f"mail_{mail.mail_id}", gap=None):
        is_cut = letter.draw(visit, mail, is_whole=navigation.asked(WHOLE) == mail.mail_id)
        with st.container(horizontal=True, key=f"mail_links_{mail.mail_id}"):
            forward = {"write": "1", "forward": mail.mail_id} | boxes.query()
            navigation.link(Route.MAIL, "Forward", icon=False, **forward)
            if is_cut:
                query = st.query_params.to_dict() | {WHOLE: mail.mail_id}
                navigation.link(Route.MAIL, f"Show all {len(mail.body):,} characters", icon=False, **query)
