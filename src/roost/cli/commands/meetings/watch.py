"""`roost meetings watch`: a live view in a terminal, new lines in a pipe."""

from __future__ import annotations

import json
import shutil
import sys
from collections import deque
from collections.abc import Iterable, Iterator

from roost.cli.app.connect import Service
from roost.cli.render.meetings import new_lines, snapshot
from roost.cli.render.output import shown
from roost.cli.render.screen import Screen
from roost.core.meetings.view.shown import MeetingView

LOOK = 0.5
"""Seconds after which an unchanged view is yielded again, so that callers can check other things."""


def poll(service: Service, user: str, meeting_id: str, seen_by: str | None = None) -> Iterator[MeetingView]:
    """Yield the view of a meeting, again on each change or after LOOK seconds, until it ends."""
    view = service.meetings.view(user, meeting_id, seen_by=seen_by)
    while True:
        yield view
        if view.is_over:
            return
        view = service.meetings.wait(user, meeting_id, view.cursor, seen_by=seen_by, timeout=LOOK)


def follow(
    views: Iterable[MeetingView], user: str, *, as_json: bool = False, live: bool | None = None
) -> MeetingView | None:
    """Show each view as it arrives and return the last one. `live` redraws in place (default: in a terminal)."""
    if as_json:
        return _last(_as_json(views))
    if sys.stdout.isatty() if live is None else live:
        return _last(_drawn(views, user))
    return _last(_printed(views, user))


def _last(views: Iterator[MeetingView]) -> MeetingView | None:
    last = deque(views, maxlen=1)
    return last[0] if last else None


def _drawn(views: Iterable[MeetingView], user: str) -> Iterator[MeetingView]:
    with Screen() as screen:
        for view in views:
            width, height = shutil.get_terminal_size()
            screen.draw(snapshot(view, user, width, height))
            yield view


def _printed(views: Iterable[MeetingView], user: str) -> Iterator[MeetingView]:
    before = None
    for view in views:
        for text in new_lines(before, view, user):
            print(text)
        sys.stdout.flush()
        before = view
        yield view


def _as_json(views: Iterable[MeetingView]) -> Iterator[MeetingView]:
    for view in views:
        print(json.dumps(shown(view)), flush=True)
        yield view
