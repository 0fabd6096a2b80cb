"""Element of the message input for Streamlit's pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import streamlit as st

from roost.ui.callbacks import uninterrupted
from roost.ui.elements import element

KEY = "message_input"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Message, or stop, that the browser sends until it is received; its key shows when it is sent again."""

    key: str
    text: str = ""
    talk_id: str | None = None
    """Talk in which it was typed; None if that had not begun."""
    place: str = ""
    """Empty page on which it was typed: all messages of one place belong to one talk."""
    busy: str | None = None
    """Policy for this message only, if one was chosen."""
    attachments: tuple[str, ...] = ()
    is_stop: bool = False
    """True to stop the answer that is being written, instead of sending a text."""


_mount = element("roost_message_input", __file__, "compose")


def draw(
    data: Mapping[str, object],
    *,
    send: Callable[[Outgoing], bool],
    command: Callable[[str, str], None],
) -> None:
    """Draw the input; `send` is called for each message and stop, `command` with a name and the text after it.

    After a message that is not accepted, those that were sent after it wait: the order is kept.
    """

    @uninterrupted
    def sent() -> None:
        for message in _messages(st.session_state[KEY].send):
            if not send(message):
                break

    @uninterrupted
    def commanded() -> None:
        chosen = st.session_state[KEY].command
        if isinstance(chosen, dict):
            command(str(chosen.get("name", "")), str(chosen.get("text") or ""))

    _mount(key=KEY, data=dict(data), on_send_change=sent, on_command_change=commanded)


def _messages(sent: object) -> Iterator[Outgoing]:
    for one in sent if isinstance(sent, list) else ():
        if isinstance(one, dict) and one.get("stop") is True:
            yield Outgoing(str(one.get("key", "")), talk_id=str(one.get("talk") or "") or None, is_stop=True)
        elif isinstance(one, dict) and isinstance(text := one.get("text"), str):
            talk, busy, files = one.get("talk"), one.get("busy"), one.get("attachments")
            yield Outgoing(
                str(one.get("key", "")),
                text,
                str(talk) if talk else None,
                str(one.get("place", "")),
                str(busy) if busy else None,
                tuple(map(str, files)) if isinstance(files, list) else (),
            )
