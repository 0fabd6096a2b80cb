"""Files of messages: `roost chat --attach`, and `roost talks save`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from roost.cli.app.connect import Service, current_user, open_service
from roost.cli.commands.talks.talks import all_messages, find_talk
from roost.cli.render.text import single_line
from roost.core.talks.attachments import Attachment
from roost.errors import Invalid, NotFound

if TYPE_CHECKING:
    from roost.settings import Settings


def upload(service: Service, user: str, paths: Iterable[Path]) -> list[str]:
    """Upload files for a message; return their ids."""
    return [service.add_attachment(user, path.name, _content(path)).attachment_id for path in paths]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Invalid(f"{str(path)!r} cannot be read: {error.strerror}") from None


def save(settings: Settings, talk_id: str, name: str, target: Path | None) -> None:
    """Save a file of a talk in the current folder, or as a file with another name."""
    user = current_user(settings)
    with open_service(settings) as service:
        talk = find_talk(service, user, talk_id)
        found = _find(service, user, talk.talk_session_id, name)
        place = target or Path(found.name)
        _write(place, service.get_attachment(user, found.attachment_id).data)
    print(f"Saved as {single_line(str(place))}")


def _find(service: Service, user: str, talk_id: str, name: str) -> Attachment:
    """Return the newest file with this name or id."""
    files = [one for message in all_messages(service, user, talk_id) for one in message.attachments]
    for one in reversed(files):
        if name in (one.name, one.attachment_id):
            return one
    raise NotFound(f"the talk has no file {name!r:.80}: `roost talks show` lists its files")


def _write(target: Path, data: bytes) -> None:
    try:
        file = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(file, "wb") as out:
            out.write(data)
    except FileExistsError:
        raise Invalid(f"{str(target)!r} exists: name another file with -o") from None
    except OSError as error:
        raise Invalid(f"{str(target)!r} cannot be written: {error.strerror}") from None
