"""Actions of people on the talk page: sending, stopping, branching, and the commands of the message input."""

from __future__ import annotations

import secrets
from typing import Any

import streamlit as st

from roost.core.talks.messages import Sender
from roost.errors import RoostError, Unavailable, public
from roost.service import AgentService
from roost.ui import dialogs, page_url
from roost.ui.approvals import pending
from roost.ui.compose.element import Outgoing
from roost.ui.message_sender import MessageSender
from roost.ui.messages.approval_cards import ALWAYS, APPROVE, DECLINE
from roost.ui.sidebar import importing, search
from roost.ui.talk_reader import TalkReader

RECEIVED = 100
"""Most keys of received messages that a tab remembers: the browser sends a message until its key is among them."""
STOP_WAIT = 2.0
"""Seconds to wait for the end of an answer before its talk is branched."""


def receive(line: MessageSender, outgoing: Outgoing) -> bool:
    """Send a message of the input, or stop an answer, unless it was received before; return False if not accepted.

    The browser sends it again until its key is among those received, or it is shown as refused.
    """
    received: list[str] = st.session_state.get("received", [])
    is_new = outgoing.key not in received
    is_accepted = _stop(line, outgoing, is_new) if outgoing.is_stop else _send(line, outgoing, is_new)
    if is_new and is_accepted:
        st.session_state["received"] = [*received[-RECEIVED:], outgoing.key]
    return is_accepted


def _stop(line: MessageSender, stop: Outgoing, is_new: bool) -> bool:
    st.session_state.pop("notice", None)  # such as that the agent is still answering
    try:
        if is_new and stop.talk_id:
            line.service.stop(line.user, stop.talk_id)
    except Unavailable:
        return False
    except RoostError:  # deleted: the page reports it
        return True
    return True


def _send(line: MessageSender, message: Outgoing, is_new: bool) -> bool:
    """Send a message to the talk in which it was typed, and open that if it was typed here.

    If the talk had not begun, the first message of its place begins it, and the others follow, whatever the page shows
    meanwhile.
    """
    places: dict[str, str] = st.session_state.setdefault("places", {})
    talk_id = message.talk_id or places.get(message.place)
    if is_new:
        sender = line if line.talk_id == talk_id else MessageSender(line.service, line.user, line.draft, talk_id)
        if not _post(sender, message, is_sent_again=True):
            return False
        talk_id = places[message.place] = str(sender.talk_id)
    is_here = message.talk_id in (None, line.talk_id)
    if is_here and talk_id and (is_new or page_url.opened() is None):
        page_url.open_talk(talk_id)
    return True


def command(service: AgentService, name: str, text: str) -> None:
    """Do what a command of the input says."""
    reading: Any = st.session_state.get("reading")
    if name == "new":
        page_url.start_new()
    elif name == "follow":
        page_url.follow()
    elif name == "search":
        search.begin(text)
    elif name == "import":
        dialogs.show(importing.NAME)
    elif not isinstance(reading, TalkReader) or not reading.messages:
        st.session_state["notice"] = "There is no talk yet: send a message first."
    elif name in ("rename", "export", "delete"):
        dialogs.show(name.capitalize(), reading.talk_id)
    elif name == "fork":
        _branch(service, reading, name, reading.messages[-1].seq, "")
    elif name == "regenerate":
        answers = [message.seq for message in reading.messages if message.sender is not Sender.USER]
        _branch(service, reading, name, answers[-1] if answers else 0, "")


def say(line: MessageSender, text: str) -> None:
    """Send a text that was not typed into the input: a suggestion, or a question again."""
    if _post(line, Outgoing("", text)):
        page_url.open_talk(str(line.talk_id))


def _post(line: MessageSender, message: Outgoing, *, is_sent_again: bool = False) -> bool:
    """Add a message to a talk; return whether it was accepted. One that is refused returns to the input.

    With `is_sent_again`, one that cannot be sent now is not refused: the browser tries again.
    """
    try:
        talk_id = line.send(message.text, key=message.key or None, busy=message.busy, attachments=message.attachments)
    except RoostError as error:
        if is_sent_again and isinstance(error, Unavailable):
            return False
        st.session_state["notice"] = public(error)
        st.session_state["refused"] = {"key": message.key or secrets.token_hex(8), "text": message.text}
        return False
    st.session_state.pop("refused", None)
    st.session_state.pop("notice", None)
    st.session_state["sent"] = (talk_id, line.seq)
    return True


def act(service: AgentService, line: MessageSender, action: str, seq: int, text: str) -> None:
    """Do what was chosen for a message of the list."""
    reading: Any = st.session_state.get("reading")
    if not isinstance(reading, TalkReader):
        return
    if action == "retry" and (question := reading.question_before(seq)):
        say(line, question.content)
    elif action == "older":
        _show_older(service)
    elif action in (APPROVE, DECLINE, ALWAYS):
        approval_id, _, reason = text.partition(" ")
        st.session_state["notice"] = pending.decide(service, reading.user_id, approval_id, action, reason)
    elif action == "version":
        page_url.open_talk(text)
    elif action in ("edit", "regenerate", "fork"):
        _branch(service, reading, action, seq, text)


def _branch(service: AgentService, reading: TalkReader, action: str, seq: int, text: str) -> None:
    """Open a branch or a fork of the talk; an answer that is being written is stopped, unless the talk is forked."""
    user, talk_id = reading.user_id, reading.talk_id
    st.session_state.pop("notice", None)
    try:
        if reading.running and action != "fork":
            service.stop(user, talk_id, wait=STOP_WAIT)
        if action == "edit":
            talk = service.edit_message(user, talk_id, seq, text)
        elif action == "regenerate":
            talk = service.regenerate(user, talk_id, seq=seq)
        else:
            talk = service.fork(user, talk_id, seq=seq)
    except RoostError as error:
        st.session_state["notice"] = public(error)
        return
    st.session_state["sent"] = (talk.talk_session_id, talk.messages)
    page_url.open_talk(talk.talk_session_id)


def _show_older(service: AgentService) -> None:
    reading: Any = st.session_state.get("reading")
    try:
        if isinstance(reading, TalkReader):
            reading.go_back(service)
    except RoostError as error:
        st.session_state["notice"] = public(error)
