"""Mail between users and agents: send, read, reply, archive, count."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from roost.core.envelopes import imported_mail as imported
from roost.core.envelopes.effects import SendMail
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.mail import (
    Mail,
    MailPage,
    MailStatus,
    answering,
    decode_cursor,
    encode_cursor,
    followed,
    forwarding,
)
from roost.core.envelopes.sender import SenderContext
from roost.core.monitoring.facts import FactRow
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import addresses, checks
from roost.core.values.priority import Priority
from roost.core.values.traits import Count, NewId, ReplyField, idempotent, reads
from roost.errors import Invalid, LimitReached, Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.filtering import AFTER_ALL_IDS
from roost.runtime.monitoring.fact_stream import POLL_INTERVAL
from roost.stores.sql import mail as mail_sql


class Mails:
    """Mail of the service. Its coroutines await only pending results, so that plain threads can drive them.

    A user has the mailbox `user:ann` and those of their agents, `agent:d`. Sender and recipient see a mail; its status
    is that of the recipient.
    """

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    async def send(
        self,
        user_id: str,
        to: str,
        subject: str,
        body: str,
        *,
        sender: str | None = None,
        priority: str = "normal",
        expires_in: float | None = None,
        key: str | None = None,
    ) -> NewId:
        """Send mail to an agent or a user, as the user or as one of their agents; return its id.

        A repeated call with the same `key` returns the same mail.
        """
        self._context.ram.check()
        box = self._box(user_id, sender)
        if sender is not None:
            await self._context.store.read(mail_sql.check_owner, user_id, box)
        return await self._write(
            SenderContext(user_id, box), to, subject, body, key, priority=priority, expires_in=expires_in
        )

    async def reply(
        self,
        user_id: str,
        mail_id: str,
        body: str,
        *,
        sender: str | None = None,
        priority: str | None = None,
        subject: str | None = None,
        key: str | None = None,
    ) -> NewId:
        """Reply to the sender in the same thread, by default with the same priority; return the new mail's id.

        A reply to a mail that one has sent goes to the same recipient. `sender` names the end that writes, if the user
        owns both.
        """
        letter = await self.get(user_id, mail_id)
        end = _own_side(user_id, letter) if sender is None else await self._end(user_id, letter, sender)
        return await self.answer(SenderContext(user_id, end), letter, body, priority=priority, subject=subject, key=key)

    async def forward(
        self,
        user_id: str,
        mail_id: str,
        to: str,
        note: str = "",
        *,
        sender: str | None = None,
        priority: str | None = None,
        key: str | None = None,
    ) -> NewId:
        """Forward a mail below a `note`, from the mailbox it is in, in a new thread; return the new mail's id.

        It has the priority of the mail by default. `sender` names the end that forwards it, if the user owns both. A
        repeated call with the same `key` returns the same mail.
        """
        self._context.ram.check()
        mail = await self.get(user_id, mail_id)
        end = _own_side(user_id, mail) if sender is None else await self._end(user_id, mail, sender)
        subject, body = forwarding(
            mail, note and checks.text(note, "the note", most=self._context.limits.message_bytes)
        )
        priority = mail.priority if priority is None else priority
        return await self._write(SenderContext(user_id, end), to, subject, body, key, priority=priority)

    @idempotent
    async def import_mail(
        self,
        user_id: str,
        mail_id: str,
        sender: str,
        subject: str,
        body: str,
        *,
        created: datetime,
        thread_id: str | None = None,
        priority: str = "normal",
        status: str = "read",
        reply_to: str | None = None,
        expires: datetime | None = None,
        read_at: datetime | None = None,
    ) -> Annotated[bool, ReplyField("added")]:
        """Add a mail of an export to the user's mailbox; return whether it was added, or is there already.

        Nothing is sent: nobody is notified, no agent handles it, and it is not an arrival. A sender other than the user
        and their agents is stored as `imported:SENDER`.
        """
        box, origin = self._box(user_id, None), imported.checked_id(mail_id)
        mail = Mail(
            origin,
            imported.id_in(box, origin if thread_id is None else imported.checked_id(thread_id)),
            imported.imported_sender(sender, user_id),
            box,
            checks.name(subject, "the subject"),
            checks.text(body, "the body", most=self._context.limits.message_bytes),
            checks.choice(priority, "the priority", Priority),
            checks.choice(status, "the status", MailStatus),
            imported.checked_time(created, "`created`"),
            None if reply_to is None else checks.name(reply_to, "`reply_to`"),
            None if expires is None else imported.checked_time(expires, "`expires`"),
            None if read_at is None else imported.checked_time(read_at, "`read_at`"),
        )
        self._context.ram.check()
        await self._context.quota.use(user_id, len(subject) + len(body))
        return await self._context.store.write(mail_sql.add_imported, mail, imported.id_in(box, origin))

    async def answer(
        self,
        sender: SenderContext,
        letter: Mail,
        body: str,
        *,
        priority: str | None = None,
        subject: str | None = None,
        key: str | None = None,
    ) -> str:
        """Reply to a mail from one of its ends, as a link in a chain of messages."""
        to = letter.sender if sender.address == letter.recipient else letter.recipient
        subject = answering(letter.subject) if subject is None else subject
        priority = letter.priority if priority is None else priority
        return await self._write(sender, to, subject, body, key, priority=priority, answers=letter)

    async def inbox(
        self,
        user_id: str,
        box: str | None = None,
        *,
        status: str | None = None,
        include_archived: bool = False,
        newest: bool = False,
        limit: int = PAGE,
        before: str | None = None,
    ) -> list[Mail]:
        """Return the mail in the user's own mailbox, or in that of an agent, without expired mail.

        Urgent mail comes first, mail of the same priority in order; with `newest` the newest comes first. `before` is
        the last id of the previous page; with `newest`, that mail may have been deleted.
        """
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if status is None else checks.choice(status, "the status", MailStatus)
        if before is not None:
            checks.name(before, "the mail id")
        found: list[Mail] = await self._context.store.read(
            mail_sql.listed,
            user_id,
            self._box(user_id, box),
            wanted,
            checks.flag(include_archived, "`include_archived`"),
            checks.flag(newest, "`newest`"),
            limit,
            before,
            self._now(),
        )
        return found

    @reads
    async def sent(self, user_id: str, *, limit: int = PAGE, before: str | None = None) -> list[Mail]:
        """Return the mail that the user has sent, not that of agents, newest first, with expired mail.

        `before` is the last id of the previous page.
        """
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        return await self._context.store.read(mail_sql.sent, self._box(user_id, None), limit, last)

    @reads
    async def arrivals(self, user_id: str, *, after: str | None = None, limit: int = PAGE) -> MailPage:
        """Return mail to the user in the order in which it arrived: after a cursor, or the newest.

        Archived mail is included, expired mail is not. The cursor `0` returns all mail.
        """
        store, box = self._context.store, self._box(user_id, None)
        checks.count(limit, "the limit", least=1, most=MOST)
        number = 0 if after is None else decode_cursor(after, store.generation)
        query = (mail_sql.arrivals, box, number, after is None, limit + (after is not None))
        found, is_unnumbered = await store.read(*query)
        if is_unnumbered:
            await store.write(mail_sql.number_arrivals, box)
            found, _ = await store.read(*query)
        page, now = found[:limit], self._now()
        mail = [replace(one, cursor=encode_cursor(store.generation, arrival)) for arrival, one in page]
        reached = encode_cursor(store.generation, page[-1][0] if page else number)
        unexpired = tuple(one for one in mail if one.expires is None or one.expires.timestamp() > now)
        return MailPage(unexpired, reached, len(found) > limit)

    @reads
    async def wait(self, user_id: str, after: str, timeout: float | None = None) -> MailPage:  # noqa: ASYNC109
        """Return mail that arrived after a cursor once there is some; none if the time is up or Roost closes."""
        clock = self._context.host.clock
        latest = None if timeout is None else clock.monotonic() + checks.seconds(timeout, "the timeout")
        decode_cursor(after)
        while not self._is_closing():
            with self._context.facts.expecting_mail(user_id) as arrival:  # listen first, then check, then wait
                try:
                    page = await self.arrivals(user_id, after=after, limit=MOST)
                except Unavailable:
                    if self._is_closing():
                        break
                    raise
                after = page.cursor  # past mail that has expired
                left = POLL_INTERVAL if latest is None else min(POLL_INTERVAL, latest - clock.monotonic())
                if page.is_over or left <= 0:
                    return page
                if not page.more:
                    await arrival.within(left)
        return MailPage((), after)

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Mail]:
        """Yield each mail to the user when it arrives, from the first read or after a cursor, until Roost closes."""
        checks.name(user_id, "the user id")
        if after is not None:
            decode_cursor(after)
        return followed(partial(self.arrivals, user_id, limit=1), partial(self.wait, user_id), after)

    @reads
    async def unread_count(self, user_id: str, box: str | None = None) -> Count:
        """Return the number of unread mails in the user's own mailbox, or in that of an agent."""
        return await self._context.store.read(mail_sql.unread, user_id, self._box(user_id, box), self._now())

    async def get(self, user_id: str, mail_id: str) -> Mail:
        """Return a mail without marking it as read."""
        self._check(user_id, mail_id)
        return await self._context.store.read(mail_sql.get, user_id, mail_id)

    @idempotent
    async def read(self, user_id: str, mail_id: str) -> Mail:
        """Return a mail and mark it as read; the sender's reading does not mark it."""
        self._check(user_id, mail_id)
        return await self._context.store.write(mail_sql.read, user_id, mail_id, self._now())

    @idempotent
    async def archive(self, user_id: str, mail_id: str) -> Mail:
        """Archive a mail: it is not listed or counted any more. A receiving agent still handles it."""
        self._check(user_id, mail_id)
        return await self._context.store.write(mail_sql.archive, user_id, mail_id)

    async def delete(self, user_id: str, mail_id: str) -> None:
        """Delete a mail from the user's own mailbox; its sender no longer sees it either."""
        self._check(user_id, mail_id)
        await self._context.store.write(mail_sql.delete, user_id, mail_id)

    async def thread(self, user_id: str, thread_id: str, *, limit: int = MOST, before: str | None = None) -> list[Mail]:
        """Return the newest mails of a thread in order, from either end, archived ones too.

        `before` is the first id of the previous page, which has newer ones.
        """
        checks.name(user_id, "the user id")
        checks.name(thread_id, "the thread id")
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        return await self._context.store.read(mail_sql.thread, user_id, thread_id, limit, last)

    # --- inside ----------------------------------------------------------------------------------

    async def _write(
        self, sender: SenderContext, to: str, subject: str, body: str, key: str | None, **options: Any
    ) -> str:
        owner, box = sender.user_id, sender.address
        try:
            mail = await self._dispatcher.composer.mail(sender, to, subject, body, key=key, **options)
        except LimitReached:  # even if the inbox is full now
            recipient = addresses.parse(to, owner).text
            known_id = key and await self._context.store.read(mail_sql.by_key, box, key, recipient, subject, body)
            if known_id:
                return known_id
            raise
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: send the mail again after its restart")
        await self._context.quota.use(owner, len(subject) + len(body))
        # In order with all other mail of the sender, also that with the same key.
        mail_id: str
        mail_id, _ = await self._context.store.write(
            mail_sql.send, mail, facts=partial(self._facts, mail), then=partial(self._sent, mail)
        )
        return mail_id

    def _facts(self, mail: SendMail, sent: tuple[str, tuple[Envelope, ...]]) -> list[FactRow]:
        mail_id, posted = sent
        if mail_id != mail.mail_id:  # a repeated call
            return []
        kind, _, name = mail.sender.partition(":")
        return self._context.facts.sent(name if kind == "agent" else f"{name}/", (mail,), posted)

    def _sent(self, mail: SendMail, sent: tuple[str, tuple[Envelope, ...]]) -> None:
        mail_id, posted = sent
        if mail_id != mail.mail_id and mail.envelope is not None:  # a repeated call
            self._dispatcher.look_again(mail.envelope.address)
        self._dispatcher.posted(posted)

    async def _end(self, user_id: str, mail: Mail, sender: str) -> str:
        """Return the mailbox of the user that is one end of the mail."""
        box = self._box(user_id, sender)
        await self._context.store.read(mail_sql.check_owner, user_id, box)
        if box not in (mail.sender, mail.recipient):
            raise Invalid(f"{box!r:.200} is neither the sender nor the recipient of this mail")
        return box

    def _box(self, user_id: str, box: str | None) -> str:
        checks.name(user_id, "the user id")
        return f"user:{user_id}" if box is None else addresses.parse(box, user_id).text

    def _check(self, user_id: str, mail_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(mail_id, "the mail id")

    def _is_closing(self) -> bool:
        return self._dispatcher.closing

    def _now(self) -> float:
        return self._context.host.clock.now()


def _own_side(owner: str, mail: Mail) -> str:
    """Return the address of the owner or their agent that received the mail, or else sent it."""
    return mail.recipient if addresses.parse(mail.recipient, owner).user_id == owner else mail.sender
