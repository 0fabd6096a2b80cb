"""One mail of a thread: sender, recipient, time, priority, what became of it, and its text."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

import streamlit as st

from roost.core.envelopes.mail import Mail
from roost.core.values.priority import Priority
from roost.ui.design import components
from roost.ui.design.avatars import avatar
from roost.ui.mail import boxes
from roost.ui.shell.visit import Visit

LONG = 20_000
"""Characters of a text that are shown at first."""


def draw(visit: Visit, mail: Mail, *, is_whole: bool) -> bool:
    """Draw a mail as plain text; return whether its text is cut."""
    body = mail.body if is_whole else mail.body[:LONG]
    sender, recipient = boxes.who(visit, mail.sender), boxes.who(visit, mail.recipient)
    urgency = "" if mail.priority is Priority.NORMAL else f'<span class="roost-badge">{mail.priority} priority</span>'
    subject = f'<p class="roost-letter-subject">{escape(mail.subject)}</p>' if not _is_titled(mail) else ""
    own = " roost-own" if mail.sender == boxes.address(visit) else ""
    st.html(
        f'<article class="roost-letter{own}"><header>{avatar(sender.removeprefix("agent "), "2rem")}'
        f"<div><h2>{escape(sender)}</h2><span>to {escape(recipient)} · {components.moment(mail.created)}</span></div>"
        f'{urgency}<span class="roost-fate">{escape(fate(mail))}</span></header>'
        f'{subject}<div class="roost-mail" tabindex="0" role="group" aria-label="Text">{escape(body)}</div></article>'
    )
    return len(body) < len(mail.body)


def fate(mail: Mail) -> str:
    """Return what became of a mail: of one to an agent that it was delivered, read and processed, and when."""
    if mail.expires is not None and mail.expires <= datetime.now(UTC) and mail.read_at is None:
        return f"expired {components.moment(mail.expires)}"
    if not mail.recipient.startswith(boxes.AGENT):
        return str(mail.status)
    steps = [("delivered", mail.created), ("read", mail.read_at), ("processed", mail.processed)]
    return " · ".join(f"{word} {components.moment(time)}" for word, time in steps if time is not None)


def _is_titled(mail: Mail) -> bool:
    """Return whether the title of the page says the subject: that of the first mail, or of its answers."""
    return mail.mail_id == mail.thread_id or mail.subject[:3].lower() == "re:"
