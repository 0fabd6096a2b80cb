"""Mailboxes of the user and of their agents, and how addresses and mails are named on the pages."""

from __future__ import annotations

import streamlit as st

from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.values.addresses import shortened
from roost.ui.callbacks import uninterrupted
from roost.ui.shell import navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.url_choice import BEFORE
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

BOX = "box"
OWN = "Your mail"
AGENTS = 200
"""Agents that are offered by name; others are typed."""
AGENT = "agent:"


def named() -> str | None:
    """Return the agent's mailbox that the URL names, `agent:d`; None for the user's own."""
    return navigation.asked(BOX)


def address(visit: Visit, box: str | None = None) -> str:
    """Return the full address of a mailbox: `user:ann`, `agent:ann/d`."""
    if box is None:
        return f"user:{visit.user}"
    name = box.removeprefix(AGENT)
    return box if "/" in name else f"{AGENT}{visit.user}/{name}"


def agents(visit: Visit) -> list[str]:
    """Return the addresses of the user's first agents, in short form."""
    return [f"{AGENT}{agent.agent_id}" for agent in visit.service.agents.list(visit.user, limit=AGENTS)]


def choice(visit: Visit) -> None:
    """Draw the choice of the mailbox; an agent beyond those that are offered is typed."""
    box = named() or ""
    offered = ["", *agents(visit)]
    key = f"box_{box}"
    st.selectbox(
        "Mailbox",
        offered if box in offered else [*offered, box],
        index=offered.index(box) if box in offered else len(offered),
        format_func=label,
        accept_new_options=True,
        key=key,
        on_change=_choose,
        args=(key,),
    )


def label(box: str) -> str:
    return f"Agent {box.removeprefix(AGENT)}" if box.startswith(AGENT) else box or OWN


@uninterrupted
def _choose(key: str) -> None:
    box = full(str(st.session_state[key] or ""))
    url_choice.show(**{BOX: box or None, BEFORE: None})


def full(typed: str) -> str:
    """Return the address that was chosen or typed: a bare name is that of an agent."""
    typed = typed.strip()
    return typed if not typed or ":" in typed else f"{AGENT}{typed}"


def query() -> dict[str, str]:
    """Return the query of links that stay in this mailbox."""
    box = named()
    return {BOX: box} if box else {}


def back_link() -> None:
    """Draw the link from a mail to its mailbox."""
    navigation.link(Route.MAIL, f"Back to {plain(label(named() or ''))}", icon=False, **query())


def who(visit: Visit, end: str) -> str:
    """Return the name of a sender or recipient: `you`, `agent d`, or another address as it is."""
    if end == address(visit):
        return "you"
    short = shortened(end, visit.user)
    return f"agent {short.removeprefix(AGENT)}" if short.startswith(AGENT) else short


def is_unread(mail: Mail) -> bool:
    return mail.status is MailStatus.UNREAD
