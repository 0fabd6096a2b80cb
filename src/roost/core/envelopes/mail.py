"""Mail between users and agents, in threads."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.values import checks
from roost.core.values.checks import NAME_LENGTH
from roost.core.values.priority import Priority
from roost.errors import Invalid, StaleCursor

_CURSOR = re.compile(r"(?:([0-9A-Za-z_-]{1,40})\.)?([0-9]{1,18})")


class MailStatus(StrEnum):
    """Status of a mail for its recipient."""

    UNREAD = "unread"
    READ = "read"
    REPLIED = "replied"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Mail:
    """Mail. `created`: time of delivery. `processed`: time at which the receiving agent had handled it."""

    mail_id: str
    thread_id: str
    sender: str
    recipient: str
    subject: str
    body: str
    priority: Priority
    status: MailStatus
    created: datetime
    reply_to: str | None = None
    expires: datetime | None = None
    read_at: datetime | None = None
    processed: datetime | None = None
    cursor: str = ""
    """Cursor to continue after this mail, if it was read as an arrival."""

    @property
    def is_answered_by_itself(self) -> bool:
        """Return whether the agent's answer is mailed back to the sender.

        Replies of agents are not answered: two agents would thank each other until their hops are used up.
        """
        return self.reply_to is None or not self.sender.startswith("agent:")


@dataclass(frozen=True, slots=True)
class MailPage:
    """Mail of one person in the order in which it arrived. `more`: further mail is available after the cursor."""

    mail: tuple[Mail, ...]
    cursor: str
    more: bool = False

    @property
    def is_over(self) -> bool:
        """Return whether there is mail, so that a wait ends."""
        return bool(self.mail)


def encode_cursor(generation: str, number: int) -> str:
    """Return the cursor of an arrival; it belongs to one generation of the store (see `Store.generation`)."""
    return f"{generation}.{number}" if generation else str(number)


def decode_cursor(cursor: object, generation: str | None = None) -> int:
    """Return the number of an arrival. Raise StaleCursor if the cursor is of another generation than the given one."""
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None:
        raise Invalid(f"the cursor {checks.shown(cursor)} is not one of mail: use that of a mail, or `0` for all")
    number = int(found[2])
    if number and generation is not None and (found[1] or "") != generation:
        raise StaleCursor("this cursor is from before the store was restored: start again without one")
    return number


async def followed(
    newest: Callable[[], Awaitable[MailPage]], wait: Callable[[str], Awaitable[MailPage]], after: str | None
) -> AsyncIterator[Mail]:
    """Yield each mail that arrives after a cursor, or after now, until a wait ends without one."""
    page = MailPage((), (await newest()).cursor if after is None else after)
    while (page := await wait(page.cursor)).mail:
        for mail in page.mail:
            yield mail


def answering(subject: str) -> str:
    """Return the subject of a reply, with a single `Re:`."""
    return subject if subject[:3].lower() == "re:" else f"Re: {subject}"[:NAME_LENGTH]


def forwarding(mail: Mail, note: str) -> tuple[str, str]:
    """Return the subject and the body of a forwarded mail: the note, a header with its origin, and its text."""
    subject = mail.subject if mail.subject[:4].lower() == "fwd:" else f"Fwd: {mail.subject}"[:NAME_LENGTH]
    origin = f"---------- Forwarded mail ----------\nFrom: {mail.sender}\nTo: {mail.recipient}\nSubject: {mail.subject}"
    sent = f"Date: {mail.created.isoformat(timespec='seconds')}"
    return subject, "\n\n".join([*([note] if note else []), f"{origin}\n{sent}", mail.body])
