"""`roost mail`: between you, other people and agents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.commands import choice
from roost.cli.desk import NEWEST, check_agent, found, note_waiting, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.meeting_desk import address, full
from roost.cli.options import Config, Json, Limit, Store, Urgency, group, urgency
from roost.cli.tables import ago, at, facts, some_time
from roost.cli.text import line, plain
from roost.core import mail
from roost.core.addresses import familiar
from roost.core.mail import MailStatus
from roost.core.priority import Priority
from roost.errors import Forbidden, NotFound

app = group()
Mail = Annotated[str, typer.Argument(metavar="MAIL", help="The id of a mail, or any part of it that no other has.")]
Box = Annotated[str | None, typer.Option("--agent", help="The mailbox of this agent of yours, and not your own.")]
Body = Annotated[str, typer.Argument(metavar="TEXT", help="What to write; - reads it from standard input.")]


@app.command()
def send(
    to: Annotated[
        str, typer.Argument(metavar="TO", help="user:NAME, or an agent: NAME, agent:NAME or agent:OWNER/NAME.")
    ],
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="What it is about.")],
    body: Body,
    sender: Annotated[
        str | None, typer.Option("--from", metavar="AGENT", help="The agent of yours who writes it.")
    ] = None,
    priority: Urgency = "normal",
    expires: Annotated[
        float | None,
        typer.Option("--expires", metavar="DURATION", parser=some_time, help="How long it is worth reading."),
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Write to an agent or a person.

    \b
    For example:
      roost mail send d "Report" "How was the night?" --priority high
    """
    with opened(store, config) as (service, user):
        check_agent(service, user, sender, [])
        mail_id = service.mail.send(
            user, full(to), subject, _text(body), sender=address(sender), priority=priority, expires_in=expires
        )
        note_waiting(service)
        sent = service.mail.get(user, mail_id) if json else None
    show(sent, lambda: [mail_id], as_json=json)


@app.command()
def reply(
    mail: Mail,
    body: Body,
    priority: Annotated[
        str | None, typer.Option("--priority", parser=urgency, help="Else as urgent as the mail itself.")
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Answer a mail, in its thread."""
    with opened(store, config) as (service, user):
        answered = _found(service, user, mail)
        mail_id = service.mail.reply(user, answered.mail_id, _text(body), priority=priority)
        note_waiting(service)
        sent = service.mail.get(user, mail_id) if json else None
    show(sent, lambda: [mail_id], as_json=json)


def _text(body: str) -> str:
    return sys.stdin.read() if body == "-" else body


@app.command()
def ls(
    agent: Box = None,
    status: Annotated[
        str | None,
        typer.Option("--status", parser=choice("the status", MailStatus), help="unread, read, replied or archived."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List mail, newest first."""
    with opened(store, config) as (service, user):
        check_agent(service, user, agent, [])
        listed = service.mail.inbox(
            user, address(agent), status=status, include_archived=everything, newest=True, limit=limit
        )
    headings = ("ID", "FROM", "STATUS", "SENT", "PRIORITY", "SUBJECT")
    show_list(listed, headings, lambda one: _row(one, user), "No mail.", as_json=json)


def _row(one: mail.Mail, user: str) -> tuple[str, ...]:
    return (
        short(one.mail_id), familiar(one.sender, user), one.status, ago(one.created), _mark(one.priority), one.subject
    )  # fmt: skip


def _mark(priority: Priority) -> str:
    return "" if priority is Priority.NORMAL else str(priority)


def _found(service: Service, user: str, part: str) -> mail.Mail:
    return found(
        part, "mails", lambda name: service.mail.get(user, name),
        lambda: _newest(service, user), lambda one: one.mail_id,
    )  # fmt: skip


def _newest(service: Service, user: str) -> list[mail.Mail]:
    """Those in one's own mailbox, and in those of one's agents."""
    listed = service.mail.inbox(user, include_archived=True, newest=True, limit=NEWEST)
    for agent in service.agents.list(user, limit=50):
        listed += service.mail.inbox(user, f"agent:{agent.agent_id}", include_archived=True, newest=True)
    return listed


@app.command("show")
def show_one(
    mail: Mail,
    keep: Annotated[bool, typer.Option("--keep-unread", help="Look at it without reading it.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Read a mail."""
    with opened(store, config) as (service, user):
        one = _found(service, user, mail)
        if not keep and one.recipient == f"user:{user}":
            one = service.mail.read(user, one.mail_id)
    show(one, lambda: _letter(one, user), as_json=json)


def _letter(one: mail.Mail, user: str) -> Iterator[str]:
    yield from facts(
        [
            ("mail", one.mail_id),
            ("from", familiar(one.sender, user)),
            ("to", familiar(one.recipient, user)),
            ("subject", one.subject),
            ("sent", at(one.created)),
            ("priority", _mark(one.priority)),
            ("status", one.status),
            ("processed", at(one.processed)),
            ("expires", at(one.expires)),
            ("reply to", one.reply_to),
        ]
    )
    yield f"\n{plain(one.body)}"


@app.command()
def archive(mail: Mail, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Put a mail away."""
    with opened(store, config) as (service, user):
        one = service.mail.archive(user, _found(service, user, mail).mail_id)
    if one.status is not MailStatus.ARCHIVED:
        raise Forbidden(
            f"{short(one.mail_id)} is in the mailbox of {familiar(one.recipient, user)}: it alone puts it away"
        )
    show(one, lambda: [f"{short(one.mail_id)} is {one.status}."], as_json=json)


@app.command()
def thread(
    mail: Annotated[
        str, typer.Argument(metavar="MAIL", help="The id of any mail of the thread, or of the thread itself.")
    ],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show all mails of a thread, oldest first."""
    with opened(store, config) as (service, user):
        try:
            listed = service.mail.thread(user, mail)
        except NotFound:
            listed = []
        if not listed:
            listed = service.mail.thread(user, _found(service, user, mail).thread_id)
    show(listed, lambda: _conversation(listed, user), as_json=json)


def _conversation(listed: list[mail.Mail], user: str) -> Iterator[str]:
    for number, one in enumerate(listed):
        yield ("\n" if number else "") + line(
            familiar(f"{one.sender} → {one.recipient}, {at(one.created)}: {one.subject}", user)
        )
        yield plain(one.body)
