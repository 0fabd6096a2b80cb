"""`roost talks fork`, `edit` and `regenerate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.cli.app.connect import Service, current_user, open_service
from roost.cli.commands.talks.talks import all_messages, find_talk
from roost.cli.render.output import print_json, shown
from roost.cli.render.text import sanitize, single_line
from roost.core.talks.messages import Sender
from roost.core.talks.talk import Talk
from roost.errors import BrainFailed

if TYPE_CHECKING:
    from roost.settings import Settings


def fork(settings: Settings, talk_id: str, seq: int | None, title: str | None, *, as_json: bool) -> None:
    user = current_user(settings)
    with open_service(settings) as service:
        talk = find_talk(service, user, talk_id)
        made = service.fork(user, talk.talk_session_id, seq=seq, title=title)
    if as_json:
        return print_json(shown(made))
    print(f"Forked {made.messages} messages as {made.talk_session_id}")
    print(f"Continue it with: roost chat --talk {made.talk_session_id}")
    return None


def edit(settings: Settings, talk_id: str, seq: int, text: str, *, as_json: bool) -> None:
    user = current_user(settings)
    with open_service(settings, hosting=True) as service:
        talk = find_talk(service, user, talk_id)
        _answer(service, user, service.edit_message(user, talk.talk_session_id, seq, text), as_json)


def regenerate(settings: Settings, talk_id: str, seq: int | None, *, as_json: bool) -> None:
    user = current_user(settings)
    with open_service(settings, hosting=True) as service:
        talk = find_talk(service, user, talk_id)
        _answer(service, user, service.regenerate(user, talk.talk_session_id, seq=seq), as_json)


def _answer(service: Service, user: str, branch: Talk, as_json: bool) -> None:
    """Print the answer of a branch as it is written, and the id of the branch."""
    branch_id, error = branch.talk_session_id, None
    for change in service.stream_messages(user, branch_id):
        if change.message.sender == Sender.AGENT and change.message.seq > branch.messages:
            error = change.message.error
            if not as_json:
                print(sanitize(change.text), end="", flush=True)
    if as_json:
        messages = all_messages(service, user, branch_id)
        return print_json({"talk": shown(service.get_session(user, branch_id)), "messages": shown(messages)})
    if error is not None:
        raise BrainFailed(single_line(error))
    print(f"\n\nBranch: {branch_id}")
    return None
