"""What the commands for meetings share: their options, and how meetings and participants are named."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from roost.cli import desk
from roost.cli.find import Service

Meeting = Annotated[
    str, typer.Argument(metavar="MEETING", help="The id of a meeting, or any part of it that no other has.")
]
By = Annotated[str | None, typer.Option("--as", metavar="AGENT", help="In the name of this agent of yours.")]
LATER = "the others hear of it when `roost up` runs, or while you watch"


def found(service: Service, user: str, part: str) -> str:
    """The id of the meeting with this id, or with this part in it."""

    def there(meeting_id: str) -> str:
        service.meetings.minutes(user, meeting_id)  # also of one that is long over
        return meeting_id

    return desk.found(
        part, "meetings", there, lambda: [one.meeting_id for one in service.meetings.list(user, limit=desk.NEWEST)], str
    )


def full(who: str) -> str:
    """`d` is the agent `agent:d`."""
    return who if ":" in who else f"agent:{who}"


def address(named: str | None) -> str | None:
    return None if named is None else full(named)


def text_of(given: str) -> str:
    return sys.stdin.read() if given == "-" else given
