"""Mail that is imported: its ids, its sender and its times, as they are stored in the mailbox of the user."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256

from roost.core.values import addresses, checks
from roost.errors import Invalid

MARK = "imported:"
"""Start of the sender of an imported mail, unless it is the user or one of their agents."""
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_ID = re.compile(r"mail_[0-9a-f]{25}")
_TIME = len("mail_") + 12
"""Length of the part of an id that is its time."""


def imported_sender(sender: object, user_id: str) -> str:
    """Return the sender as it is stored: nobody can add mail that another user of this Roost seems to have sent."""
    named = checks.name(sender, "the sender").removeprefix(MARK)
    address = addresses.parse(named, user_id)
    is_own = address.user_id == user_id and named == sender
    return address.text if is_own else MARK + address.text


def checked_id(mail_id: object) -> str:
    if not isinstance(mail_id, str) or not _ID.fullmatch(mail_id):
        raise Invalid(f"the mail id {checks.shown(mail_id)} is not valid: use the id in the export")
    return mail_id


def id_in(box: str, mail_id: str) -> str:
    """Return another id of the same time: the same one for the same mail in the same mailbox."""
    digest = sha256(f"{box}\n{mail_id}".encode()).hexdigest()
    return mail_id[:_TIME] + digest[:13]


def checked_time(moment: object, what: str) -> datetime:
    if not isinstance(moment, datetime) or moment.tzinfo is None or moment < EARLIEST:
        raise Invalid(f"{what} must be a time with a zone, such as 2030-01-01T09:00:00+00:00")
    return moment
