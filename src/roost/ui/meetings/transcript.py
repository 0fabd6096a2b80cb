"""Transcript of a meeting: an element that shows messages, moves and refused entries, and stays at the newest one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import merge
from typing import Any, TypeAlias

import streamlit as st

from roost.core.meetings.view.shown import MeetingView, MoveMade, Refusal, Spoken
from roost.core.values.addresses import shortened
from roost.ui.callbacks import uninterrupted
from roost.ui.design.avatars import hue, initials
from roost.ui.design.components import moment
from roost.ui.elements import element
from roost.ui.meetings import status
from roost.ui.meetings.names import listed, readable, short

KEY = "transcript"
MORE, MOST = 200, 1_000
"""Messages that are shown at first and with each request for older ones, and at most."""
Happened: TypeAlias = Spoken | MoveMade | Refusal
_LIMIT = "messages_shown"


_mount = element("roost_transcript", __file__, "transcript")


def limit(meeting_id: str) -> int:
    """Return the number of messages to show of a meeting."""
    shown, number = st.session_state.get(_LIMIT, ("", MORE))
    return int(number) if shown == meeting_id else MORE


def draw(view: MeetingView, user: str) -> None:
    """Draw the newest messages, with what happened in between."""
    items = [_item(one, view, user) for one in _in_order(view)]
    asked = limit(view.meeting_id)

    @uninterrupted
    def older() -> None:
        st.session_state[_LIMIT] = (view.meeting_id, min(asked + MORE, MOST))

    data = {
        "meeting": f"{view.meeting_id} {view.seen_by}",
        "items": items,
        "more": view.said > len(view.words) and asked < MOST,
        "left": view.said - len(view.words),
    }
    _mount(key=KEY, data=data, on_older_change=older)


def _in_order(view: MeetingView) -> Iterator[Happened]:
    """Return messages, moves and refusals by time, none of them before the oldest message that is shown."""
    first = view.words[0].at if view.said > len(view.words) and view.words else None
    refused = [one for one in view.refused if one.at is not None]
    kinds: tuple[Iterable[Happened], ...] = (view.words, view.played, refused)
    return (one for one in merge(*kinds, key=_time) if first is None or _time(one) >= first)


def _time(one: Happened) -> datetime:
    assert one.at is not None
    return one.at


def _item(one: Happened, view: MeetingView, user: str) -> dict[str, Any]:
    sender = one.player if isinstance(one, MoveMade) else one.sender
    name = short(sender, user)
    at = _time(one)
    return {
        "id": one.entry,
        "name": name,
        "initials": initials(name),
        "hue": hue(name),
        "own": sender == view.seen_by,
        "time": moment(at),
        "iso": at.isoformat(),
        **_content(one, view, user),
    }


def _content(one: Happened, view: MeetingView, user: str) -> dict[str, Any]:
    if isinstance(one, MoveMade):
        return {"kind": "move", "text": _move(one, view)}
    if isinstance(one, Refusal):
        return {"kind": "refused", "text": one.text, "note": f"Refused: {readable(one.reason, user)}"}
    to = f"to {listed(one.to, user)}" if one.to else ""
    return {"kind": "message", "text": shortened(one.text, user), "to": to, "mine": view.seen_by in one.to}


def _move(one: MoveMade, view: MeetingView) -> str:
    mark = status.mark(view, one.player)
    if mark and isinstance(one.move, dict):
        return f"took cell {one.move.get('cell')} with {mark}"
    return f"moved {json.dumps(one.move, ensure_ascii=False)}"
