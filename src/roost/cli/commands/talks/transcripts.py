"""`roost talks export` and `roost talks import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from roost.cli.app.connect import Service, current_user, open_service
from roost.cli.app.files import write_new_file
from roost.cli.commands.talks.talks import find_talk, is_terminal
from roost.cli.render.output import print_json
from roost.cli.render.text import sanitize
from roost.core.talks.transcripts import MOST_BYTES
from roost.errors import Invalid

if TYPE_CHECKING:
    from roost.settings import Settings


def export(settings: Settings, talk_id: str, form: str, target: Path | None) -> None:
    """Print a transcript, or write it to a new file that only its owner can read."""
    user = current_user(settings)
    with open_service(settings) as service:
        talk = find_talk(service, user, talk_id)
        parts = _parts(service, user, talk.talk_session_id, form)
        if target is not None:
            write_new_file(target, parts)
            print(f"Exported to {target}.", file=sys.stderr)
            return
        for text in parts:
            sys.stdout.write(_safe(text) if is_terminal() else text)


def _parts(service: Service, user: str, talk_id: str, form: str) -> Iterator[str]:
    after: int | None = 0
    while after is not None:
        part = service.export_part(user, talk_id, format=form, after=after)
        yield part.text
        after = part.after


def _safe(text: str) -> str:
    """Sanitize line by line, so that an escape sequence without an end hides no more than its line."""
    return "\n".join(map(sanitize, text.split("\n")))


def import_file(settings: Settings, source: str, profile: str | None, agent: str | None, *, as_json: bool) -> None:
    text = _read(source)
    user = current_user(settings)
    with open_service(settings) as service:
        talk_id = service.import_talk(user, text, profile=profile, agent=agent)
    if as_json:
        print_json({"talkSessionId": talk_id})
    else:
        print(talk_id)


def _read(source: str) -> str:
    try:
        if source == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with open(source, "rb") as file:
                content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Invalid(f"{source!r} cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise Invalid(f"{source!r} is too long: {MOST_BYTES:,} bytes are allowed")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid(f"{source!r} is not a text in UTF-8") from None
