"""`roost talks` and `roost link`: what there is, as text or as JSON."""

from __future__ import annotations

import json
from typing import Any

from roost.cli.find import Service, reached, service_of, user_of
from roost.cli.text import line, plain
from roost.core.messages import Message, Status
from roost.errors import Unavailable
from roost.protocol.talks import MessageReply, TalkReply
from roost.settings import Settings

PAGE = 1_000
_MARKS = {
    Status.INTERRUPTED: "interrupted",
    Status.STREAMING: "being written",
    Status.FAILED: "failed",
    Status.WITHDRAWN: "withdrawn",
}


def ls(settings: Settings, *, as_json: bool, limit: int) -> None:
    with service_of(settings) as service:
        talks = service.list_sessions(user_of(settings), limit=limit)
    if as_json:
        return print_json([TalkReply.of(talk).model_dump(mode="json") for talk in talks])
    if not talks:
        print("No talks yet: start one with `roost chat`, or on the page of `roost up`.")
    for talk in talks:
        used = talk.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        mark = " …" if talk.running else ""
        print(f"{talk.talk_session_id}  {used}  {talk.messages:>5}  {line(talk.profile)}  {line(talk.title)}{mark}")
    return None


def show(settings: Settings, talk_id: str, *, as_json: bool) -> None:
    user = user_of(settings)
    with service_of(settings) as service:
        talk = service.get_session(user, talk_id)
        messages = all_messages(service, user, talk_id)
    if as_json:
        replies = [MessageReply.of(message).model_dump(mode="json") for message in messages]
        return print_json({"talk": TalkReply.of(talk).model_dump(mode="json"), "messages": replies})
    print(f"{line(talk.title) or 'New talk'} ({line(talk.profile)})")
    for message in messages:
        _print(message)
    return None


def link(settings: Settings) -> None:
    service = reached(settings)
    if service is None:
        raise Unavailable("nothing runs on this store: start it with `roost up`, which prints a link")
    with service:
        # By the name the pages are known by: browsers keep a cookie for each name.
        print(service.link().replace("//127.0.0.1:", "//localhost:"))


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
