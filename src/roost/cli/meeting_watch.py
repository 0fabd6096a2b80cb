"""`roost meetings watch`: a picture drawn over itself; through a pipe, what is new, line by line."""

from __future__ import annotations

import json
import shutil
import sys
from collections import deque
from collections.abc import Iterable, Iterator

from roost.cli.find import Service
from roost.cli.meeting_text import news, picture
from roost.cli.screen import Screen
from roost.core.meetings.shown import MeetingView
from roost.protocol.faces import shown

LOOK = 0.5
"""Seconds after which a view is given again, for whoever has something else to look at as well."""


def looks(service: Service, user: str, meeting_id: str, seen_by: str | None = None) -> Iterator[MeetingView]:
    """As it is, and again when it has changed, or else now and then; to its end."""
    view = service.meetings.view(user, meeting_id, seen_by=seen_by)
    while True:
        yield view
        if view.is_over:
            return
        view = service.meetings.wait(user, meeting_id, view.cursor, seen_by=seen_by, timeout=LOOK)


def follow(
    views: Iterable[MeetingView], user: str, *, as_json: bool = False, live: bool | None = None
) -> MeetingView | None:
    """Show each view as it comes, to the end; the last one. `live`: over each other (in a terminal, unless told)."""
    if as_json:
        return _last(_each(views))
    if sys.stdout.isatty() if live is None else live:
        return _last(_drawn(views, user))
    return _last(_told(views, user))


def _last(views: Iterator[MeetingView]) -> MeetingView | None:
    last = deque(views, maxlen=1)
    return last[0] if last else None


def _drawn(views: Iterable[MeetingView], user: str) -> Iterator[MeetingView]:
    with Screen() as screen:
        for view in views:
            width, height = shutil.get_terminal_size()
            screen.draw(picture(view, user, width, height))
            yield view


def _told(views: Iterable[MeetingView], user: str) -> Iterator[MeetingView]:
    before = None
    for view in views:
        for text in news(before, view, user):
            print(text)
        sys.stdout.flush()
        before = view
        yield view


def _each(views: Iterable[MeetingView]) -> Iterator[MeetingView]:
    for view in views:
        print(json.dumps(shown(view)), flush=True)
        yield view
