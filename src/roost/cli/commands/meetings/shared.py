"""Options and lookup that the commands of `roost meetings` share."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.cli.app import shared as desk
from roost.cli.app.connect import Service

Meeting = Annotated[str, typer.Argument(metavar="MEETING", help="Id of a meeting, or a unique part of it.")]
By = Annotated[str | None, typer.Option("--as", metavar="AGENT", help="Act as this agent of yours.")]
NOT_RUNNING = "the others receive it when `roost up` runs, or while you watch"


def find_meeting(service: Service, user: str, part: str) -> str:
    """Return the id of the meeting with this id, or of the only one whose id contains this part."""

    def there(meeting_id: str) -> str:
        service.meetings.minutes(user, meeting_id)  # also for a meeting that ended long ago
        return meeting_id

    return desk.find_by_id(
        part, "meetings", there, lambda: [one.meeting_id for one in service.meetings.list(user, limit=desk.NEWEST)], str
    )
