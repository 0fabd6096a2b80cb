"""`roost talks` and `roost link`: what there is, as text or as JSON."""

from __future__ import annotations

import json
from typing import Any

from roost.cli.desk import only, short
from roost.cli.find import Service, by_name, reached, service_of, user_of
from roost.cli.tables import ago, listing
from roost.cli.text import line, plain
from roost.core.addresses import familiar
from roost.core.messages import Message, Status
from roost.core.talks import Talk
from roost.errors import NotFound, Unavailable
from roost.protocol.talks import MessageReply, TalkReply
from roost.settings import Settings

PAGE = 1_000
NONE = "No talks yet: start one with `roost chat`, or on the page of `roost up`."
_MARKS = {
    Status.INTERRUPTED: "interrupted",
    Status.STREAMING: "being written",
    Status.FAILED: "failed",
    Status.WITHDRAWN: "withdrawn",
}


def ls(settings: Settings, *, as_json: bool, limit: int) -> None:
    user = user_of(settings)
    with service_of(settings) as service:
        talks = service.list_sessions(user, limit=limit)
    if as_json:
        return print_json([TalkReply.of(talk).model_dump(mode="json") for talk in talks])
    for row in listing(talks, ("ID", "MESSAGES", "USED", "WITH", "TITLE"), lambda one: _row(one, user), NONE):
        print(row)
    return None


def _row(talk: Talk, user: str) -> tuple[str, ...]:
    title = f"{talk.title} {'(waits for your word)' if talk.asking else '…'}" if talk.running else talk.title
    return short(talk.talk_session_id), str(talk.messages), ago(talk.updated), _whom(talk, user), title


def _candidate(talk: Talk) -> str:
    return f"{talk.talk_session_id}  {line(talk.title)}"


def _whom(talk: Talk, user: str) -> str:
    return line(familiar(talk.agent, user) if talk.agent else talk.profile)


def show(settings: Settings, talk_id: str, *, as_json: bool) -> None:
    user = user_of(settings)
    with service_of(settings) as service:
        talk = found(service, user, talk_id)
        messages = all_messages(service, user, talk.talk_session_id)
    if as_json:
        replies = [MessageReply.of(message).model_dump(mode="json") for message in messages]
        return print_json({"talk": TalkReply.of(talk).model_dump(mode="json"), "messages": replies})
    print(f"{line(talk.title) or 'New talk'} ({_whom(talk, user)})")
    for message in messages:
        _print(message)
    return None


def found(service: Service, user: str, part: str) -> Talk:
    """The talk with this id, or else the only one with this part in its id."""
    try:
        return service.get_session(user, part)
    except NotFound:
        matching = [talk for talk in _all_talks(service, user) if part and part.lower() in talk.talk_session_id]
    if not matching:
        raise NotFound("none of your talks has that in its id: `roost talks ls` lists them")
    return only(matching, part, "talks", _candidate)


def _all_talks(service: Service, user: str) -> list[Talk]:
    talks = page = service.list_sessions(user, limit=PAGE)
    while len(page) == PAGE:
        page = service.list_sessions(user, limit=PAGE, before=page[-1].talk_session_id)
        talks = talks + page
    return talks


def link(settings: Settings, *, as_json: bool) -> None:
    service = reached(settings)
    if service is None:
        raise Unavailable(
            "no `roost up` runs on this store, and it alone makes links: start it; `roost ui` prints one as it starts, "
            "and another when it is started again"
        )
    with service:
        made = by_name(service.link())
    if as_json:
        return print_json({"link": made})
    print(made)
    return None


def all_messages(service: Service, user: str, talk_id: str) -> list[Message]:
    page = service.get_messages(user, talk_id, limit=PAGE)
    pages = [page.messages]
    while page.more_before:
        page = service.get_messages(user, talk_id, before=page.messages[0].seq, limit=PAGE)
        pages.append(page.messages)
    return [message for messages in reversed(pages) for message in messages]


def _print(message: Message) -> None:
    if message.status is Status.WITHDRAWN:
        return
    mark = f" ({_MARKS[message.status]})" if message.status in _MARKS else ""
    print(f"\n{message.seq}. {message.sender}{mark}\n{plain(message.content)}")
    if message.error:
        print(line(message.error))


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))
