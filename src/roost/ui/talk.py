"""Talk page: history, live answer, and message input.

The script draws the messages read so far and ends. A fragment polls for changes: quickly while an answer is being
written, slowly otherwise. It draws only the message being written; any other change redraws the whole page.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from roost.core.journal.approvals import Approval
from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.talk import Talk
from roost.errors import Invalid, NotFound, RoostError, StaleCursor, public
from roost.service import AgentService
from roost.ui import approval_list, approvals, components, menu, page_url, sidebar
from roost.ui.message_sender import MessageSender
from roost.ui.sidebar import Draft
from roost.ui.talk_reader import TalkReader

QUICK = 0.2
SLOW = 3.0
CALM = 5.0
"""Seconds between polls: while an answer is being written, afterwards, and after a while without changes."""
CALM_AFTER = 15
"""Polls without a change."""
LOOK_AT_TALKS = 4.0
"""Seconds between polls of the list of talks."""
LOOK_AT_QUESTIONS = 1.0
"""Seconds between polls of pending approvals, at most as often as the page polls."""
GONE = "This talk no longer exists. You can start a new one here."


@dataclass(slots=True)
class PageState:
    """State shown by the page, which the poll compares with the current state."""

    service: AgentService
    user: str
    reading: TalkReader | None
    talks: list[Talk]
    every: float
    waiting: tuple[Approval, ...] = ()
    """Pending approvals, in this talk and elsewhere."""
    is_operator: bool = False
    shape: tuple[object, ...] = ()
    refreshes: int = 0

    def remember(self) -> None:
        self.shape = self.now(self.talks)

    def now(self, talks: list[Talk]) -> tuple[object, ...]:
        reading = self.reading.shape if self.reading else ()
        asked = tuple(approval.approval_id for approval in self.waiting)
        return (reading, sidebar.shape(talks), self.service.health().problem, asked)

    @property
    def is_asking(self) -> bool:
        """Return whether the open talk waits for an approval."""
        return bool(approvals.here(self.waiting, self.reading))

    @property
    def is_stale(self) -> bool:
        """Read changes; return whether more than the text being written has changed. Raises NotFound."""
        self.refreshes += 1
        if self.reading:
            self.reading.go_on(self.service)
        if self.refreshes % max(1, round(LOOK_AT_TALKS / self.every)) == 0:
            self.talks = sidebar.listed(self.service, self.user)
        if self.refreshes % max(1, round(LOOK_AT_QUESTIONS / self.every)) == 0:
            self.waiting = approvals.waiting(self.service, self.user)
        return self.now(self.talks) != self.shape


def page(service: AgentService, user: str, *, is_operator: bool = False) -> None:
    """Draw the page; for the operator, failed answers have their tracebacks behind "Details"."""
    reading, talk = _open(service, user)
    talks = sidebar.listed(service, user)
    draft = _draft(service)
    found = approvals.waiting(service, user)
    sidebar.draw(
        service, user, talks, talk, draft, approval_list.elsewhere(found, reading.talk_id if reading else None)
    )
    running = reading is not None and reading.running
    calm = st.session_state.pop("calm", False)
    menu.dialog(service, user)
    approval_list.dialog(service, user, talks)
    scene = PageState(service, user, reading, talks, QUICK if running else CALM if calm else SLOW, found, is_operator)
    line = MessageSender(service, user, draft, reading.talk_id if reading else None)
    _history(scene, line)
    with st.bottom:  # both always exist, so that the input does not move
        _notices(service)
        approvals.draw(service, approvals.here(found, reading))
        with st.container(key="controls"):
            if reading and running:
                st.button("Stop", key="stop", on_click=_stop, args=(reading, service), shortcut="Esc")
    # Not inside `st.bottom`: only if Streamlit places it there itself does the page scroll with the answer.
    st.chat_input("Type a message", key="prompt", on_submit=_submit, args=(line,))
    components.behaviour(reading.talk_id if reading else "new")


# --- what is open ---------------------------------------------------------------------------------


def _open(service: AgentService, user: str) -> tuple[TalkReader | None, Talk | None]:
    """Return the talk that the URL names, with its messages; show a notice and a new talk if it was deleted."""
    talk_id = page_url.opened()
    if talk_id is None:
        st.session_state.pop("reading", None)
        return None, None
    try:
        talk = service.get_session(user, talk_id)
        reading = st.session_state.get("reading")
        if isinstance(reading, TalkReader) and (reading.user_id, reading.talk_id) == (user, talk_id):
            reading = continued(reading, service)
        else:
            reading = TalkReader.start(service, user, talk_id)
    except (NotFound, Invalid):
        page_url.start_new()
        st.session_state.pop("reading", None)
        st.session_state["notice"] = GONE
        return None, None
    st.session_state["reading"] = reading
    return reading, talk


def continued(reading: TalkReader, service: AgentService) -> TalkReader:
    try:
        reading.go_on(service)
    except StaleCursor:  # the store was restored from a backup: messages of this tab may be gone
        return TalkReader.start(service, reading.user_id, reading.talk_id)
    return reading


def _draft(service: AgentService) -> Draft:
    names = [profile.name for profile in service.profiles()]
    draft = st.session_state.get("draft")
    if not isinstance(draft, Draft) or draft.profile not in names:
        draft = st.session_state["draft"] = Draft(names[0])
    return draft


def _notices(service: AgentService) -> None:
    """Draw notices just above the message input."""
    with st.container(key="notices"):
        problem = service.health().problem
        if problem:
            components.notice(problem)
        notice = st.session_state.get("notice")  # until the next action of the user
        if notice:
            components.notice(notice)


# --- the messages ---------------------------------------------------------------------------------


def _history(scene: PageState, line: MessageSender) -> None:
    reading = scene.reading
    with st.container(key="older"):
        if reading and reading.more_before:
            st.button("Show older messages", key="show_older", on_click=_show_older, args=(scene.service,))
    poll = st.fragment(_poll, run_every=scene.every)
    scene.remember()
    with st.container(key="messages"):
        writing = reading.writing if reading else None
        for message in reading.messages if reading else ():
            if message is writing:
                components.message(message, lambda: poll(scene))
            else:
                details = reading.traceback(scene.service, message) if reading and scene.is_operator else None
                components.message(message, partial(components.finished, message, details))
        if writing is None:
            poll(scene)
    if reading is None:
        components.invitation(scene.service.profiles(), line.draft.profile, _choose, partial(_say, line))
    else:
        _try_again(reading, line)


def _poll(scene: PageState) -> None:
    """Draw the message being written, or the indicator that one is coming. The first run is part of the page."""
    try:
        if scene.refreshes and scene.is_stale:
            _draw_again(scene)
    except RoostError:
        _draw_again(scene)  # the page reports the error
    scene.refreshes += not scene.refreshes
    if scene.every == SLOW and scene.refreshes > CALM_AFTER:
        st.session_state["calm"] = True
        _draw_again(scene)
    reading = scene.reading
    if reading and reading.writing:
        components.content(reading.writing, is_asking=scene.is_asking)
    elif reading and reading.running:
        components.waiting(is_asking=scene.is_asking)


def _draw_again(scene: PageState) -> None:
    """Redraw the page for the same talk: the URL sent with this poll may be outdated."""
    page_url.show(scene.reading.talk_id if scene.reading else None)
    st.rerun()


def _try_again(reading: TalkReader, line: MessageSender) -> None:
    last: Message | None = reading.messages[-1] if reading.messages else None
    if reading.running or last is None or last.sender is Sender.USER or last.status is not Status.FAILED:
        return
    question = reading.question_before(last.seq)
    if question:
        st.button("Try again", key="try_again", on_click=_say, args=(line, question.content))


# --- what people do -------------------------------------------------------------------------------


def _submit(line: MessageSender) -> None:
    text = st.session_state["prompt"]
    if text:
        _say(line, text)


def _say(line: MessageSender, text: str) -> None:
    try:
        page_url.open_talk(line.send(text))
    except RoostError as error:
        st.session_state["notice"] = public(error)
        st.session_state["prompt"] = text  # back into the input, so that nothing typed is lost


def _stop(reading: TalkReader, service: AgentService) -> None:
    with suppress(RoostError):  # deleted: the page reports it
        service.stop(reading.user_id, reading.talk_id)


def _show_older(service: AgentService) -> None:
    reading: Any = st.session_state.get("reading")
    try:
        if isinstance(reading, TalkReader):
            reading.go_back(service)
    except RoostError as error:
        st.session_state["notice"] = public(error)


def _choose() -> None:
    draft = st.session_state.get("draft")
    if isinstance(draft, Draft):
        draft.profile = st.session_state["profile"]
