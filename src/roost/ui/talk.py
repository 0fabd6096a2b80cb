"""Talk page: the message list, and the message input.

The list gets its messages from the server's live stream, and asks for a new run of the page when anything else has
changed. Where there is no such stream, a fragment polls instead: quickly while an answer is being written, slowly
otherwise. It feeds the same list; any change of more than the text being written redraws the whole page.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st

from roost.connections.connections import Connections
from roost.core.journal.approvals import Approval
from roost.core.talks.branches import versions
from roost.core.talks.talk import Talk
from roost.errors import Invalid, NotFound, RoostError, StaleCursor
from roost.service import AgentService
from roost.ui import header, page_url, talk_actions
from roost.ui.approvals import pending
from roost.ui.compose import element as input_element
from roost.ui.design import components
from roost.ui.first_visit import cards, connect_model, guide_actions
from roost.ui.message_sender import MessageSender
from roost.ui.messages import element
from roost.ui.messages.approval_cards import CARDS, approval_cards
from roost.ui.messages.digest import digest
from roost.ui.messages.views import Views
from roost.ui.sidebar import importing, menu, sidebar
from roost.ui.sidebar.sidebar import Draft
from roost.ui.talk_reader import TalkReader

QUICK = 0.2
SLOW = 3.0
CALM = 5.0
"""Seconds between polls: while an answer is being written, afterwards, and after a while without changes."""
CALM_AFTER = 15
"""Polls without a change."""
UPLOAD = "/api/v1/attachments"
"""URL for files, on a server that also serves the pages."""
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
    unread: int = 0
    """Unread mails of the user."""
    is_operator: bool = False
    stream: str | None = None
    """URL of the live stream, if there is one."""
    views: Views = field(default_factory=Views)
    shape: tuple[object, ...] = ()
    refreshes: int = 0

    def remember(self) -> None:
        self.shape = self.now(self.talks)

    def now(self, talks: list[Talk]) -> tuple[object, ...]:
        reading = self.reading.shape if self.reading else ()
        asked = tuple(approval.approval_id for approval in self.waiting)
        return (reading, sidebar.shape(talks), self.service.health().problem, asked, self.unread, self.is_lost)

    @property
    def is_lost(self) -> bool:
        """Return whether the browser cannot have the live stream."""
        return bool(st.session_state.get("stream_lost"))

    @property
    def is_polling(self) -> bool:
        return self.stream is None or self.is_lost

    def shown(self) -> dict[str, object]:
        """Return what the message list is given: the messages only where they do not come by the live stream."""
        reading, sent = self.reading, st.session_state.get("sent", ("", 0))
        talk_id = reading.talk_id if reading else None
        data: dict[str, object] = {
            "talk": talk_id,
            "live": self.stream,
            "live_lost": self.is_lost,
            "running": bool(reading and reading.running),
            "asking": self.is_asking,
            "sent": sent[1] if sent[0] == talk_id else 0,
            "focus": page_url.focus(talk_id),
            "versions": self._versions(talk_id),
            "around": digest(self.talks, self.waiting, self.unread, self.service.health().problem),
        }
        if reading and self.is_polling:
            data |= {
                "messages": self._messages(reading),
                "more": reading.more_before,
                "approvals": self._cards(reading),
            }
        return data

    def _cards(self, reading: TalkReader) -> list[dict[str, Any]]:
        try:
            return approval_cards(self.service.approvals.in_talk(self.user, reading.talk_id, limit=CARDS))
        except RoostError:  # deleted meanwhile: the next run reports it
            return []

    def _versions(self, talk_id: str | None) -> dict[str, object]:
        """Return which messages have several versions, in branches of the talk."""
        if talk_id is None:
            return {}
        try:
            found = versions(self.service.list_branches(self.user, talk_id), talk_id)
        except RoostError:  # deleted meanwhile: the next run reports it
            return {}
        return {str(seq): {"talks": several.talks, "current": several.current} for seq, several in found.items()}

    def _messages(self, reading: TalkReader) -> list[dict[str, Any]]:
        found = []
        for message in reading.messages:
            found.append(self.views.get(reading.talk_id, message).as_json())
            if self.is_operator and (details := reading.traceback(self.service, message)):
                found[-1]["details"] = details
        return found

    @property
    def is_asking(self) -> bool:
        """Return whether the open talk waits for an approval."""
        return bool(pending.here(self.waiting, self.reading))

    @property
    def is_stale(self) -> bool:
        """Read changes; return whether more than the text being written has changed. Raises NotFound."""
        self.refreshes += 1
        if self.reading:
            self.reading.go_on(self.service)
        if self.refreshes % max(1, round(LOOK_AT_TALKS / self.every)) == 0:
            self.talks = sidebar.listed(self.service, self.user)
        if self.refreshes % max(1, round(LOOK_AT_QUESTIONS / self.every)) == 0:
            self.waiting = pending.waiting(self.service, self.user)
            self.unread = self.service.mail.unread_count(self.user)
        return self.now(self.talks) != self.shape


def page(
    service: AgentService,
    user: str,
    *,
    is_operator: bool = False,
    stream: str | None = None,
    views: Views | None = None,
    connections: Connections | None = None,
    has_accounts: bool = False,
    can_sign_out: bool = True,
) -> None:
    """Draw the page; for the operator, failed answers have their tracebacks behind "Details".

    The operator can also connect models, if there are `connections`.

    `stream` is the URL of the live stream; without one the page polls, and renders messages with `views`.
    """
    reading, talk = _open(service, user)
    talks = sidebar.listed(service, user)
    draft = _draft(service)
    found = pending.waiting(service, user)
    unread = service.mail.unread_count(user)
    sidebar.draw(
        service, user, talks, talk, draft, len(found), unread, has_accounts=has_accounts, can_sign_out=can_sign_out
    )
    running = reading is not None and reading.running
    calm = st.session_state.pop("calm", False)
    menu.dialog(service, user)
    importing.dialog(service, user)
    connect_model.dialog(connections if is_operator else None, draft)
    every = QUICK if running else CALM if calm else SLOW
    scene = PageState(service, user, reading, talks, every, found, unread, is_operator, stream, views or Views())
    line = MessageSender(service, user, draft, reading.talk_id if reading else None)
    if talk is not None:
        header.draw(service, talk, is_running=running, is_asking=scene.is_asking)
    _history(scene, line)
    with st.bottom:  # both always exist, so that the input does not move
        _notices(service)
        guide_actions.draw(service, talk, draft, is_operator=is_operator)
        input_element.draw(
            _input(scene, talk, draft),
            send=partial(talk_actions.receive, line),
            command=partial(talk_actions.command, service),
        )
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
        if st.session_state.get("deleted") != talk_id:
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
    scene.remember()
    with st.container(key="messages"):
        if scene.is_polling:
            st.fragment(_poll, run_every=scene.every)(scene, line)
        else:
            _list(scene, line)
    if scene.reading is None:
        cards.draw(scene.service, scene.user, line.draft, partial(talk_actions.say, line))


def _list(scene: PageState, line: MessageSender) -> None:
    element.draw(scene.shown(), partial(talk_actions.act, scene.service, line), _set_stream)


def _poll(scene: PageState, line: MessageSender) -> None:
    """Feed the list. The first run is part of the page."""
    try:
        if scene.refreshes and scene.is_stale:
            _draw_again(scene)
    except RoostError:
        _draw_again(scene)  # the page reports the error
    scene.refreshes += not scene.refreshes
    if scene.every == SLOW and scene.refreshes > CALM_AFTER:
        st.session_state["calm"] = True
        _draw_again(scene)
    _list(scene, line)


def _draw_again(scene: PageState) -> None:
    """Redraw the page for the same talk: the URL sent with this poll may be outdated."""
    page_url.show(scene.reading.talk_id if scene.reading else None)
    st.rerun()


def _set_stream(is_live: bool) -> None:
    st.session_state["stream_lost"] = not is_live


# --- the message input ----------------------------------------------------------------------------


def _input(scene: PageState, talk: Talk | None, draft: Draft) -> dict[str, object]:
    """Return what the message input is given."""
    state = st.session_state
    return {
        "talk": talk.talk_session_id if talk else None,
        "running": bool(scene.reading and scene.reading.running),
        "policy": (talk or draft).busy,
        "session": state.setdefault("session", secrets.token_hex(8)),
        "received": state.get("received", []),
        "refused": state.get("refused"),
        "upload": UPLOAD if scene.stream else None,
    }
