"""`roost mail`: mail between users and agents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.app.connect import Service
from roost.cli.app.durations import positive_duration
from roost.cli.app.options import Config, Json, Limit, PriorityOption, Store, command_group, parse_priority
from roost.cli.app.shared import (
    NEWEST,
    check_agent,
    find_by_id,
    full_address,
    note_not_running,
    open_session,
    optional_address,
)
from roost.cli.app.typer_ext import parse_choice
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import key_values, local_time, relative_time
from roost.cli.render.text import sanitize, single_line
from roost.core.envelopes import mail
from roost.core.envelopes.mail import MailStatus
from roost.core.talks.messages import MOST
from roost.core.values.addresses import shortened
from roost.core.values.priority import Priority
from roost.errors import Forbidden, NotFound

app = command_group()
Mail = Annotated[str, typer.Argument(metavar="MAIL", help="Id of a mail, or a unique part of it.")]
Box = Annotated[str | None, typer.Option("--agent", help="Mailbox of this agent instead of your own.")]
To = Annotated[str, typer.Argument(metavar="TO", help="Recipient: user:NAME, NAME, agent:NAME or agent:OWNER/NAME.")]
Body = Annotated[str, typer.Argument(metavar="TEXT", help="Text of the mail; - reads standard input.")]


@app.command()
def send(
    to: To,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Subject of the mail.")],
    body: Body,
    sender: Annotated[str | None, typer.Option("--from", metavar="AGENT", help="Send as this agent of yours.")] = None,
    priority: PriorityOption = "normal",
    expires: Annotated[
        float | None,
        typer.Option(
            "--expires", metavar="DURATION", parser=positive_duration, help="Time after which unread mail expires."
        ),
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Send mail to an agent or a user.

    \b
    For example:
      roost mail send d "Report" "How was the night?" --priority high
    """
    with open_session(store, config) as (service, user):
        check_agent(service, user, sender, [])
        mail_id = service.mail.send(
            user,
            full_address(to),
            subject,
            _text(body),
            sender=optional_address(sender),
            priority=priority,
            expires_in=expires,
        )
        note_not_running(service)
        sent = service.mail.get(user, mail_id) if json else None
    print_result(sent, lambda: [mail_id], as_json=json)


@app.command()
def reply(
    mail: Mail,
    body: Body,
    priority: Annotated[
        str | None, typer.Option("--priority", parser=parse_priority, help="Priority (default: that of the mail).")
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Reply to a mail in its thread."""
    with open_session(store, config) as (service, user):
        answered = _find(service, user, mail)
        mail_id = service.mail.reply(user, answered.mail_id, _text(body), priority=priority)
        note_not_running(service)
        sent = service.mail.get(user, mail_id) if json else None
    print_result(sent, lambda: [mail_id], as_json=json)


@app.command()
def forward(
    mail: Mail,
    to: To,
    note: Annotated[str, typer.Argument(metavar="NOTE", help="Text above the mail; - reads standard input.")] = "",
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Forward a mail, in a new thread."""
    with open_session(store, config) as (service, user):
        forwarded = _find(service, user, mail)
        mail_id = service.mail.forward(user, forwarded.mail_id, full_address(to), _text(note))
        note_not_running(service)
        sent = service.mail.get(user, mail_id) if json else None
    print_result(sent, lambda: [mail_id], as_json=json)


def _text(body: str) -> str:
    return sys.stdin.read() if body == "-" else body


@app.command()
def ls(
    agent: Box = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            parser=parse_choice("the status", MailStatus),
            help="Only unread, read, replied or archived mail.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include archived mail.")] = False,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List mail, newest first."""
    with open_session(store, config) as (service, user):
        check_agent(service, user, agent, [])
        listed = service.mail.inbox(
            user, optional_address(agent), status=status, include_archived=everything, newest=True, limit=limit
        )
    headings = ("ID", "FROM", "STATUS", "SENT", "PRIORITY", "SUBJECT")
    print_table(listed, headings, lambda one: _row(one, user), "No mail.", as_json=json)


def _row(one: mail.Mail, user: str) -> tuple[str, ...]:
    return (
        short_id(one.mail_id),
        shortened(one.sender, user),
        one.status,
        relative_time(one.created),
        _mark(one.priority),
        one.subject,
    )


def _mark(priority: Priority) -> str:
    return "" if priority is Priority.NORMAL else str(priority)


def _find(service: Service, user: str, part: str) -> mail.Mail:
    return find_by_id(
        part,
        "mails",
        lambda name: service.mail.get(user, name),
        lambda: _newest(service, user),
        lambda one: one.mail_id,
    )


def _newest(service: Service, user: str) -> list[mail.Mail]:
    """Return the newest mail of the user's mailbox and of the mailboxes of their agents."""
    listed = service.mail.inbox(user, include_archived=True, newest=True, limit=NEWEST)
    for agent in service.agents.list(user, limit=50):
        listed += service.mail.inbox(user, f"agent:{agent.agent_id}", include_archived=True, newest=True)
    return listed


@app.command("show")
def show_one(
    mail: Mail,
    keep: Annotated[bool, typer.Option("--keep-unread", help="Do not mark it as read.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show a mail and mark it as read."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, mail)
        if not keep and one.recipient == f"user:{user}":
            one = service.mail.read(user, one.mail_id)
    print_result(one, lambda: _letter(one, user), as_json=json)


def _letter(one: mail.Mail, user: str) -> Iterator[str]:
    yield from key_values(
        [
            ("mail", one.mail_id),
            ("from", shortened(one.sender, user)),
            ("to", shortened(one.recipient, user)),
            ("subject", one.subject),
            ("sent", local_time(one.created)),
            ("priority", _mark(one.priority)),
            ("status", one.status),
            ("processed", local_time(one.processed)),
            ("expires", local_time(one.expires)),
            ("reply to", one.reply_to),
        ]
    )
    yield f"\n{sanitize(one.body)}"


@app.command()
def archive(mail: Mail, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Archive a mail."""
    with open_session(store, config) as (service, user):
        one = service.mail.archive(user, _find(service, user, mail).mail_id)
    if one.status is not MailStatus.ARCHIVED:
        raise Forbidden(
            f"{short_id(one.mail_id)} is in the mailbox of {shortened(one.recipient, user)}:"
            " only its owner may archive it"
        )
    print_result(one, lambda: [f"{short_id(one.mail_id)} is {one.status}."], as_json=json)


@app.command()
def thread(
    mail: Annotated[str, typer.Argument(metavar="MAIL", help="Id of a thread, or of any mail in it.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show all mails of a thread, oldest first."""
    with open_session(store, config) as (service, user):
        try:
            listed = _whole_thread(service, user, mail)
        except NotFound:
            listed = _whole_thread(service, user, _find(service, user, mail).thread_id)
    print_result(listed, lambda: _conversation(listed, user), as_json=json)


def _whole_thread(service: Service, user: str, thread_id: str) -> list[mail.Mail]:
    listed = page = service.mail.thread(user, thread_id, limit=MOST)
    while len(page) == MOST:
        page = service.mail.thread(user, thread_id, limit=MOST, before=page[0].mail_id)
        listed = page + listed
    return listed


def _conversation(listed: list[mail.Mail], user: str) -> Iterator[str]:
    for number, one in enumerate(listed):
        yield ("\n" if number else "") + single_line(
            shortened(f"{one.sender} → {one.recipient}, {local_time(one.created)}: {one.subject}", user)
        )
        yield sanitize(one.body)
