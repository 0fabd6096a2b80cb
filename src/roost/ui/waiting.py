"""All that waits for a person's word, wherever agents ask for it: how many, in the sidebar, and a list to decide in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

import streamlit as st

from roost.core.approvals import Approval, Question
from roost.core.talks import Talk
from roost.service import AgentService
from roost.ui import address, deciding, menu, parts
from roost.ui.text import plain

SHOWN = 20
"""So many are in the list; the next come up as they are decided."""
MOST = 20_000
"""Characters of the arguments that are shown."""
_UNSEEN = re.compile(r"[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def elsewhere(found: tuple[Approval, ...], talk_id: str | None) -> tuple[Approval, ...]:
    """All but what the open talk asks for itself."""
    return tuple(one for one in found if talk_id is None or one.talk_session_id != talk_id)


def button(waiting: tuple[Approval, ...]) -> None:
    """In the sidebar, where there is something to decide."""
    with st.container(key="waits"):
        if waiting:
            st.button(told(len(waiting)), key="show_waiting", width="stretch", on_click=_open)


def told(count: int) -> str:
    many = f"{count} or more" if count >= deciding.NEWEST else str(count)
    return f"{many} {'waits' if count == 1 else 'wait'} for your word"


def _open() -> None:
    menu.close()
    st.session_state["deciding"] = True


def close() -> None:
    st.session_state.pop("deciding", None)


def dialog(service: AgentService, user: str, talks: list[Talk]) -> None:
    """Drawn again in each run of the page until all is decided, or it is dismissed."""
    if st.session_state.get("deciding"):
        _list(service, user, {talk.talk_session_id: parts.title(talk) for talk in talks})


@st.dialog("What waits for your word", width="medium", on_dismiss=close)
def _list(service: AgentService, user: str, titles: Mapping[str, str]) -> None:
    if st.session_state.pop("decided", False):
        st.rerun()  # all of the page: what is counted, and whoever was asked
    problem = st.session_state.pop("undecided", "")
    if problem:
        parts.notice(problem)
    waiting = elsewhere(deciding.waiting(service, user), address.opened())
    with st.container(key="waiting_list"):
        for one in waiting[:SHOWN]:
            _ask(service, one, titles)
    if len(waiting) > SHOWN:
        st.caption(f"{len(waiting) - SHOWN} more come up when these are decided.")
    if not waiting and not problem:
        close()
        st.rerun()


def _ask(service: AgentService, one: Approval, titles: Mapping[str, str]) -> None:
    key = one.approval_id
    yes, no = deciding.words(one)
    with st.form(f"waits_{key}", enter_to_submit=False):  # Enter after a reason must not allow it
        st.markdown(f"**{plain(one.tool)}** :gray[· {_who(one, titles)}, since {parts.moment(one.created)}]")
        if one.kind is not Question.CALL:
            st.text(f"The program ended in the middle of this. If it was done, say so in a terminal:\n{_command(one)}")
        if one.arguments:
            st.html(f'<pre class="roost-arguments" tabindex="0">{escape(_given(one.arguments))}</pre>')
        with st.container(horizontal=True, vertical_alignment="center"):
            st.form_submit_button(yes, key=f"allow_{key}", on_click=_decide, args=(service, one, True))
            st.form_submit_button(no, key=f"refuse_{key}", on_click=_decide, args=(service, one, False))
            st.text_input(
                "Why not", key=f"reason_{key}", max_chars=1_000, placeholder="Why not, if you refuse",
                label_visibility="collapsed",
            )  # fmt: skip


def _decide(service: AgentService, one: Approval, granted: bool) -> None:
    reason = str(st.session_state.get(f"reason_{one.approval_id}", ""))
    st.session_state["undecided"] = deciding.decide(service, one, granted=granted, reason=reason)
    st.session_state["decided"] = True


def _who(one: Approval, titles: Mapping[str, str]) -> str:
    talk = titles.get(one.talk_session_id or "")
    where = f"in the talk *{talk}*" if talk else "in a talk" if one.talk_session_id else ""
    return f"asked by {plain(one.agent_id)} {where}".rstrip() if one.agent_id else f"asked {where}"


def _command(one: Approval) -> str:
    return f"roost approvals answer {one.approval_id[-8:]} RESULT"


def _given(arguments: Mapping[str, Any]) -> str:
    """As JSON, in which nothing stands that cannot be seen or turns other text around."""
    text = json.dumps(dict(arguments), ensure_ascii=False, indent=2)
    cut = text[:MOST] + ("…" if len(text) > MOST else "")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", cut)
