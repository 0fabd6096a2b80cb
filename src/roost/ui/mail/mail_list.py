"""Mails of a mailbox: chosen by status, newest or urgent first, and archived together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.values.priority import Priority
from roost.errors import NotFound
from roost.ui.design import components
from roost.ui.mail import boxes
from roost.ui.shell import actions, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.url_choice import BEFORE
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row, RowAction

SHOWN = 50
BEGINNING = 90
"""Characters of the text that the list shows."""
SHOW, INBOX, UNREAD, ARCHIVED, ALL, SENT = "show", "inbox", "unread", "archived", "all", "sent"
VIEWS = {INBOX: "Inbox", UNREAD: "Unread", ARCHIVED: "Archived", ALL: "All"}
OWN_VIEWS = {INBOX: "Inbox", UNREAD: "Unread", SENT: "Sent", ARCHIVED: "Archived", ALL: "All"}
ORDER, URGENT = "order", "urgent"
ORDERS = {"newest": "Newest first", URGENT: "Urgent first"}
EMPTY = {
    INBOX: "No mail here.",
    UNREAD: "No unread mail.",
    SENT: "You have not written any mail yet.",
    ARCHIVED: "No archived mail.",
    ALL: "No mail here.",
}
_TONES = {MailStatus.UNREAD: "busy", MailStatus.READ: "quiet", MailStatus.REPLIED: "good", MailStatus.ARCHIVED: "quiet"}
_URGENCY = {Priority.URGENT: "bad", Priority.HIGH: "waiting"}


def draw(visit: Visit) -> None:
    box = boxes.named()
    with st.container(key="mail_filters", horizontal=True, vertical_alignment="bottom"):
        boxes.choice(visit)
        show = url_choice.segments(SHOW, "Status", VIEWS if box else OWN_VIEWS)
        order = url_choice.segments(ORDER, "Order", ORDERS) if show != SENT else ""
    found = _found(visit, box, show, order)
    rows = [_row(visit, mail, is_sent=show == SENT) for mail in found[:SHOWN]]
    columns = [Column("Subject"), Column("To" if show == SENT else "From")]
    columns += [Column("Priority"), Column("Status"), Column("Time"), Column("Text")]
    key = f"mails_{box}_{show}"
    archive = [] if show in (SENT, ARCHIVED) else [RowAction("Archive", partial(_archive, visit))]
    table.draw(key, "Mail", columns, rows, empty=_empty(box, show), actions=archive)
    _pages(found)


def _found(visit: Visit, box: str | None, show: str, order: str) -> list[Mail]:
    mail, before = visit.service.mail, navigation.asked(BEFORE)
    if show == SENT:
        return mail.sent(visit.user, limit=SHOWN + 1, before=before)
    read = partial(
        mail.inbox,
        visit.user,
        box,
        status=show if show in (UNREAD, ARCHIVED) else None,
        include_archived=show == ALL,
        newest=order != URGENT,
        limit=SHOWN + 1,
    )
    try:
        return read(before=before)
    except NotFound:
        if before is None:
            raise
    return read()  # the last mail of the previous page was deleted


def _empty(box: str | None, show: str) -> str:
    if show == INBOX and box is None:
        return "No mail. Agents write to you here, for example when a task is done."
    return EMPTY[show]


def _row(visit: Visit, mail: Mail, *, is_sent: bool) -> Row:
    is_new = boxes.is_unread(mail) and not is_sent
    url = navigation.url(Route.MAIL, thread=mail.thread_id, **boxes.query())
    return Row(
        mail.mail_id,
        (
            Cell(f"{'● ' if is_new else ''}{mail.subject.strip() or 'No subject'}", url, is_light=not is_new),
            boxes.who(visit, mail.recipient if is_sent else mail.sender),
            Cell(mail.priority, tone=_URGENCY.get(mail.priority, "")),
            Cell(mail.status, tone=_TONES[mail.status]),
            components.moment(mail.created),
            " ".join(mail.body[: BEGINNING * 4].split())[:BEGINNING],
        ),
    )


def _archive(visit: Visit, mail_ids: Sequence[str]) -> None:
    archive = partial(visit.service.mail.archive, visit.user)
    actions.each(archive, mail_ids, lambda count: f"Archived {count} mail{'' if count == 1 else 's'}.")


def _pages(found: Sequence[Mail]) -> None:
    query = st.query_params.to_dict()
    before = query.pop(BEFORE, None)
    with st.container(key="mail_pages", horizontal=True):
        if before:
            navigation.link(Route.MAIL, "First page", icon=False, **query)
        if len(found) > SHOWN:
            navigation.link(Route.MAIL, "Next page", icon=False, **query, before=found[SHOWN - 1].mail_id)
