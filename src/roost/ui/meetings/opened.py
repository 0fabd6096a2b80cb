"""Meeting that is open on a page: as one of the user's participants sees it, who also acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from roost.core.meetings.view.shown import MeetingView
from roost.ui.callbacks import once
from roost.ui.meetings import transcript
from roost.ui.meetings.names import short
from roost.ui.shell import actions, navigation
from roost.ui.shell.visit import Visit

_TIMES = "times_cleared"


@dataclass(frozen=True, slots=True)
class OpenMeeting:
    """View of the participant through whose eyes the user looks, and those of all participants of the user."""

    visit: Visit
    view: MeetingView
    views: tuple[MeetingView, ...]

    @property
    def meeting_id(self) -> str:
        return self.view.meeting_id

    @property
    def user(self) -> str:
        return self.visit.user

    @property
    def address(self) -> str:
        return f"user:{self.visit.user}"

    @property
    def by(self) -> str | None:
        """Return the agent that acts; None if the user does."""
        return None if self.view.seen_by == self.address else self.view.seen_by

    def may(self, action: str) -> bool:
        return action in self.view.may

    def name(self, address: str) -> str:
        return short(address, self.user)

    def key(self, name: str) -> str:
        """Return the key of a widget that belongs to this meeting."""
        return f"{name}_{self.meeting_id}_{st.session_state.get(_TIMES, 0)}"

    def button(self, label: str, action: str, on_click: Callable[..., None], *args: object, **options: Any) -> None:
        """Draw the button of an action, which is enabled if the rules allow it now."""
        st.button(
            label, key=f"meeting_{action}", on_click=once(on_click), args=args, disabled=not self.may(action), **options
        )

    def others(self, *, present: bool = False) -> list[str]:
        """Return the other participants, or only present ones."""
        known = (one.address for one in self.view.participants if one.status in ("in", "invited"))
        return [one for one in known if one != self.view.seen_by and (not present or one in self.view.present)]

    def act(self, call: Callable[..., object], *args: object, **options: Any) -> None:
        """Call a method of the service for the one who acts."""
        self.attempt(call, *args, **options)

    def attempt(self, call: Callable[..., object], *args: object, **options: Any) -> bool:
        """Call a method as `act` does; return False if it was refused."""
        return actions.attempt(call, self.user, self.meeting_id, *args, by=self.by, **options)


def find(visit: Visit, meeting_id: str) -> OpenMeeting:
    """Read a meeting as the URL asks for it."""
    meetings = visit.service.meetings
    view = meetings.view(
        visit.user, meeting_id, seen_by=navigation.asked("seen_by"), limit=transcript.limit(meeting_id)
    )
    return OpenMeeting(visit, view, tuple(meetings.views(visit.user, meeting_id)))


def clear() -> None:
    """Empty the inputs, from a callback, since what was typed is accepted.

    They get new keys: a value that is set here would be lost if the next run begins before this one draws it.
    """
    st.session_state[_TIMES] = st.session_state.get(_TIMES, 0) + 1
