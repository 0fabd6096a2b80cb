"""`roost export`: agents, schedules, mail and talks of a user in one file."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

from roost.cli.app.connect import Service, current_user, open_service
from roost.cli.commands.archives import records
from roost.cli.render.output import print_json, shown
from roost.cli.render.progress import Progress
from roost.core.talks.transcripts import TranscriptPart
from roost.errors import Conflict, Invalid, NotFound, Unavailable
from roost.settings import Settings

PAGE = 200
T = TypeVar("T")


def export(settings: Settings, target: str, *, as_json: bool) -> None:
    """Write the file; it gets its name when it is complete. With `-` write to standard output."""
    user = current_user(settings)
    with open_service(settings) as service, _opened(target) as out, Progress("Exported") as progress:
        archive = _Export(service, user, out, progress)
        archive.write()
    if as_json and target != "-":
        print_json({"file": target, **archive.counts})
    else:
        print(f"Exported {summary(archive.counts)}.", file=sys.stderr if target == "-" else sys.stdout)


def summary(counts: Mapping[str, int]) -> str:
    """Return the numbers of things in words, such as `1 agent, 2 mails`; `nothing` if there are none."""
    named = [f"{n:,} {kind if n == 1 else name}" for kind, name in NAMES.items() if (n := counts[kind])]
    return ", ".join(named) or "nothing"


NAMES = {"agent": "agents", "memory": "memories", "schedule": "schedules", "mail": "mails", "talk": "talks"}


class _Export:
    def __init__(self, service: Service, user: str, out: IO[bytes], progress: Progress) -> None:
        self._service = service
        self._user = user
        self._out = out
        self._progress = progress
        self.counts: Counter[str] = Counter()

    def write(self) -> None:
        self._put(records.head(self._user, datetime.now(UTC).isoformat()))
        self._agents()
        for one in pages(self._schedule_page, "schedule_id"):
            self._record("schedule", shown(one))
        for one in pages(self._mail_page, "mail_id"):
            self._record("mail", shown(one))
        for talk in pages(self._talk_page, "talk_session_id"):
            self._talk(talk.talk_session_id)
        self._put(records.end(self.counts))

    def _agents(self) -> None:
        for one in pages(lambda last: self._service.agents.list(self._user, limit=PAGE, after=last or ""), "agent_id"):
            with suppress(NotFound):
                state = self._service.agents.inspect(self._user, one.agent_id).turn_state
                self._record("agent", {**shown(one), "turnState": dict(state)})
                self._memories(one.agent_id)

    def _memories(self, agent: str) -> None:
        def page(last: str | None) -> Any:
            return self._service.agents.memories(self._user, agent, limit=PAGE, before=last)

        for one in pages(page, "key"):
            self._record("memory", {"agentId": agent, **shown(one)})

    def _schedule_page(self, last: str | None) -> Any:
        return self._service.schedules.list(self._user, limit=PAGE, after=last or "")

    def _mail_page(self, last: str | None) -> Any:
        return self._service.mail.inbox(self._user, include_archived=True, newest=True, limit=PAGE, before=last)

    def _talk_page(self, last: str | None) -> Any:
        return self._service.list_sessions(self._user, limit=PAGE, before=last)

    def _talk(self, talk_id: str) -> None:
        """Write a talk part by part: a long one is never in RAM as a whole."""
        try:
            part = self._part(talk_id, 0)
        except NotFound:
            return  # it was deleted meanwhile
        self._put(f'{{"talk": {{"talkSessionId": "{talk_id}", "transcript": ')
        self._put(_in_line(part.text))
        while part.after is not None:
            try:
                part = self._part(talk_id, part.after)
            except NotFound:  # half of its line is written
                raise Conflict(f"the talk {talk_id!r} was deleted while it was exported: export again") from None
            self._put(_in_line(part.text))
        self._put("}}\n")
        self._count("talk")

    def _part(self, talk_id: str, after: int) -> TranscriptPart:
        return self._service.export_part(self._user, talk_id, format="json", after=after)

    def _record(self, kind: str, value: object) -> None:
        self._put(records.record(kind, value))
        self._count(kind)

    def _count(self, kind: str) -> None:
        self.counts[kind] += 1
        self._progress.show(summary(self.counts))

    def _put(self, text: str) -> None:
        self._out.write(text.encode())


def _in_line(text: str) -> str:
    """Return a part of JSON in one line: its line ends are between values, those in texts are escaped."""
    return text.replace("\n", " ")


def pages(page: Callable[[str | None], list[T]], key: str) -> Iterator[T]:
    """Yield the items of all pages; each page begins after the last item of the one before."""
    found = page(None)
    while found:
        yield from found
        if len(found) < PAGE:
            return
        found = page(getattr(found[-1], key))


@contextmanager
def _opened(target: str) -> Iterator[IO[bytes]]:
    """Open a new file that only its owner can read. It is complete and fsynced when it gets its name."""
    if target == "-":
        yield sys.stdout.buffer
        return
    path = Path(target)
    if path.exists():
        raise Invalid(f"{target!r} exists: name another file")
    draft = path.with_name(f"{path.name}.partial")
    try:
        draft.unlink(missing_ok=True)  # left by an interrupted export
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.link(draft, path)
    except OSError as error:
        raise Unavailable(f"{target!r} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
