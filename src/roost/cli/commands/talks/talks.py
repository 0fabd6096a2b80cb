"""`roost talks` and `roost link`; transcripts are in `transcripts`."""

from __future__ import annotations

import os
import sys
from itertools import groupby
from typing import TYPE_CHECKING

from roost.cli.app.connect import Service, connect_running, current_user, open_service, with_localhost
from roost.cli.app.shared import single_match
from roost.cli.render.output import print_json, short_id, shown
from roost.cli.render.tables import relative_time, table_or_message
from roost.cli.render.text import sanitize, single_line
from roost.core.talks.messages import Message, Status
from roost.core.talks.search import MOST as MOST_HITS
from roost.core.talks.search import Hit
from roost.core.talks.talk import Talk
from roost.core.values.addresses import shortened
from roost.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from roost.settings import Settings

PAGE = 1_000
NONE = "No talks. Start one with `roost chat`, or on the page of `roost up`."
_MARKS = {
    Status.INTERRUPTED: "interrupted",
    Status.STREAMING: "streaming",
    Status.FAILED: "failed",
    Status.WITHDRAWN: "withdrawn",
}


def ls(settings: Settings, *, as_json: bool, limit: int) -> None:
    user = current_user(settings)
    with open_service(settings) as service:
        talks = service.list_sessions(user, limit=limit)
    if as_json:
        return print_json(shown(talks))
    for row in table_or_message(
        talks, ("ID", "MESSAGES", "LAST USED", "WITH", "TITLE"), lambda one: _row(one, user), NONE
    ):
        print(row)
    return None


def _row(talk: Talk, user: str) -> tuple[str, ...]:
    title = f"{talk.title} {'(waiting for your approval)' if talk.asking else '…'}" if talk.running else talk.title
    return short_id(talk.talk_session_id), str(talk.messages), relative_time(talk.updated), _partner(talk, user), title


def _candidate(talk: Talk) -> str:
    return f"{talk.talk_session_id}  {single_line(talk.title)}"


def _partner(talk: Talk, user: str) -> str:
    return single_line(shortened(talk.agent, user) if talk.agent else talk.profile)


def show(settings: Settings, talk_id: str, *, as_json: bool) -> None:
    user = current_user(settings)
    with open_service(settings) as service:
        talk = find_talk(service, user, talk_id)
        messages = all_messages(service, user, talk.talk_session_id)
    if as_json:
        return print_json({"talk": shown(talk), "messages": shown(messages)})
    print(f"{single_line(talk.title) or 'New talk'} ({_partner(talk, user)})")
    for message in messages:
        _print(message)
    return None


def search(settings: Settings, query: str, part: str | None, *, as_json: bool, limit: int) -> None:
    user = current_user(settings)
    with open_service(settings) as service:
        talk_id = None if part is None else find_talk(service, user, part).talk_session_id
        hits = _all_hits(service, user, query, talk_id, limit)
    if as_json:
        return print_json(shown(hits))
    if not hits:
        print("No messages found.")
    for talk_id, found in groupby(hits, key=lambda hit: hit.talk_session_id):
        of_talk = list(found)
        print(f"{short_id(talk_id)}  {single_line(of_talk[0].title)}")
        for hit in of_talk:
            print(f"  {hit.seq}. {hit.sender}, {relative_time(hit.created)}: {_highlighted(hit)}")
    return None


def _all_hits(service: Service, user: str, query: str, talk_id: str | None, limit: int) -> list[Hit]:
    """Read pages until there are enough hits; a page may be empty although more follow."""
    hits: list[Hit] = []
    cursor: str | None = None
    while len(hits) < limit:
        wanted = min(MOST_HITS, limit - len(hits))
        page = service.search(user, query, limit=wanted, after=cursor, talk_session_id=talk_id)
        hits += page.hits
        cursor = page.cursor
        if cursor is None:
            break
    return hits


def _highlighted(hit: Hit) -> str:
    """Return the excerpt; in a terminal with the matched words in bold."""
    on, off = ("\x1b[1m", "\x1b[22m") if is_terminal() and not os.environ.get("NO_COLOR") else ("", "")
    pieces: list[str] = []
    place = 0
    for start, end in hit.ranges:
        pieces += [_cut(hit.excerpt[place:start]), on, _cut(hit.excerpt[start:end]), off]
        place = end
    return "".join([*pieces, _cut(hit.excerpt[place:])])


def is_terminal() -> bool:
    return sys.stdout.isatty()


def _cut(piece: str) -> str:
    """Return a piece of one line, made safe for the terminal; its spaces stay."""
    return " ".join(sanitize(piece).splitlines())


def find_talk(service: Service, user: str, part: str) -> Talk:
    """Return the talk with this id, or the only one whose id contains this part."""
    try:
        return service.get_session(user, part)
    except NotFound:
        matching = [talk for talk in _all_talks(service, user) if part and part.lower() in talk.talk_session_id]
    if not matching:
        raise NotFound("no talk with this id: `roost talks ls` lists your talks")
    return single_match(matching, part, "talks", _candidate)


def _all_talks(service: Service, user: str) -> list[Talk]:
    talks = page = service.list_sessions(user, limit=PAGE)
    while len(page) == PAGE:
        page = service.list_sessions(user, limit=PAGE, before=page[-1].talk_session_id)
        talks = talks + page
    return talks


def link(settings: Settings, *, as_json: bool) -> None:
    service = connect_running(settings)
    if service is None:
        raise Unavailable(
            "Roost is not running: start `roost up`, which creates sign-in links; `roost ui` prints its own"
        )
    with service:
        made = service.link()
        made = made.replace(service.url, settings.url, 1) if settings.url else with_localhost(made)
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
    print(f"\n{message.seq}. {message.sender}{mark}\n{sanitize(message.content)}")
    for one in message.attachments:
        print(f"[file: {single_line(one.name)}, {one.media_type}, {one.size:,} bytes]")
    if message.error:
        print(single_line(message.error))
