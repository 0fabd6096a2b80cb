"""The operations of the store for mailboxes."""

from __future__ import annotations

from typing import Protocol

from roost.core.envelopes import Envelope, SendMail
from roost.core.mail import Mail, MailStatus
from roost.ports.store import Tx


class MailStatements(Protocol):
    """Mailboxes and mails that are not this user's are `NotFound`, as are those that do not exist.

    A mail belongs to both ends: to whoever owns the mailbox of its sender, or that of its recipient. A mailbox
    is `user:ann` or, of an agent, `agent:ann/d`.
    """

    def begin(self, tx: Tx, mail_id: str, address: str, epoch: int, now: float, /) -> Mail | None:
        """For the agent that is about to work on it: from now on it is read. None: it is gone.

        By the epoch it proves that it still may; otherwise the mail stays as it is.
        """
        ...

    def owned(self, tx: Tx, user_id: str, box: str, /) -> None:
        """Raises NotFound if this is no mailbox of theirs."""
        ...

    def by_key(self, tx: Tx, sender: str, key: str, recipient: str, subject: str, body: str, /) -> str | None:
        """The mail that was sent with this key. Raises Conflict if it says something else."""
        ...

    def send(self, tx: Tx, mail: SendMail, /) -> tuple[str, tuple[Envelope, ...]]:
        """Its id, and what it has put into inboxes. With a key that was used before: the id of the one that is there.

        Raises Conflict if that one says something else, NotFound if the recipient does not exist (any more).
        """
        ...

    def get(self, tx: Tx, user_id: str, mail_id: str, /) -> Mail: ...

    def listed(
        self, tx: Tx, user_id: str, box: str, status: MailStatus | None, archived: bool, newest: bool, limit: int,
        before: str | None, now: float, /,
    ) -> list[Mail]:  # fmt: skip
        """What is in a mailbox by priority, the urgent ones first, each in order; or with `newest` the newest first.

        With `before` what comes after that one. Without a `status` the archived ones only if `archived`.
        What has expired is left out.
        """
        ...

    def unread(self, tx: Tx, user_id: str, box: str, now: float, /) -> int: ...

    def thread(self, tx: Tx, user_id: str, thread_id: str, /) -> list[Mail]:
        """All of it, in order, expired and archived ones too."""
        ...

    def read(self, tx: Tx, user_id: str, mail_id: str, now: float, /) -> Mail:
        """If it is unread, and the user is its recipient's owner, it is read now; otherwise it stays as it is."""
        ...

    def archive(self, tx: Tx, user_id: str, mail_id: str, /) -> Mail:
        """Raises Forbidden to those who have only sent it."""
        ...

    def check(self, tx: Tx, address: str, now: float, /) -> None:
        """An agent looks at its mail: all that waits for that is due."""
        ...
