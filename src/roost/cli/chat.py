"""`roost chat`: a talk in the terminal, or through a pipe, one message a line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import Self

from roost.cli.find import Service, service_of, user_of
from roost.cli.text import line, plain
from roost.core.messages import Change, Message, Sender, Status
from roost.settings import Settings

INTERRUPTED = 130
STOP_PATIENCE = 2.0


def run(settings: Settings, profile: str | None, talk_id: str | None) -> int:
    """Talk until the input ends; the exit code."""
    with service_of(settings) as service:
        chat = Chat(service, user_of(settings), profile, talk_id)
        try:
            return chat.run(terminal=sys.stdin.isatty())
        except KeyboardInterrupt:
            _say("\n")
            return INTERRUPTED


class Chat:
    """One talk; it is made with the first message, so that looking in leaves nothing behind."""

    def __init__(self, service: Service, user: str, profile: str | None, talk_id: str | None) -> None:
        self._service = service
        self._user = user
        self._profile = profile
        self._talk = talk_id
        self._cursor: str | None = None
        self._failed = False
        if talk_id is not None:
            self._go_on(talk_id)

    def run(self, *, terminal: bool) -> int:
        if terminal:
            self._greet()
        with _Presses() as presses:
            for text in _lines(prompt="> " if terminal else ""):
                if text.strip():
                    self._say(text)
                    self._hear(presses)
                presses.check()
        return 1 if self._failed else 0

    def _go_on(self, talk_id: str) -> None:
        if self._profile is not None:
            self._service.configure(self._user, talk_id, profile=self._profile)
        page = self._service.get_messages(self._user, talk_id, limit=1)
        self._cursor = page.cursor

    def _greet(self) -> None:
        if self._talk is not None:
            talk = self._service.get_session(self._user, self._talk)
            with_whom = f"{line(talk.profile)}, in {line(talk.title)!r}" if talk.title else line(talk.profile)
        else:
            with_whom = self._profile or self._service.profiles()[0].name
        _say(f"Talking with {line(with_whom)}. Ctrl-C stops an answer, Ctrl-D leaves.\n")

    def _say(self, text: str) -> None:
        if self._talk is None:
            self._talk = self._service.create_talk_session(self._user, profile=self._profile)
        self._service.add_message(self._user, self._talk, text)

    def _hear(self, presses: _Presses) -> None:
        """Print the answer as it comes. Ctrl-C stops it; a second one, while it stops or after it, leaves."""
        try:
            self._listen()
        except KeyboardInterrupt:
            assert self._talk is not None
            presses.heed()
            self._service.stop(self._user, self._talk, wait=STOP_PATIENCE)
            self._listen()

    def _listen(self) -> None:
        assert self._talk is not None
        for change in self._service.stream_messages(self._user, self._talk, after=self._cursor):
            self._cursor = change.cursor
            if change.message.sender is Sender.AGENT:
                self._print(change)

    def _print(self, change: Change) -> None:
        if change.reset:
            _say("\n")
        _say(plain(change.text))
        if change.message.status is not Status.STREAMING:
            self._end(change.message)

    def _end(self, message: Message) -> None:
        if message.status is Status.WITHDRAWN:
            return
        mark = " (stopped)" if message.status is Status.INTERRUPTED else ""
        _say(mark if message.content.endswith("\n") else f"{mark}\n")
        if message.error:
            self._failed = True
            print(line(message.error), file=sys.stderr)


class _Presses:
    """Counts Ctrl-C: one raised where Python cannot pass it on, as while something is collected, is not lost."""

    def __init__(self) -> None:
        self._count = self._heeded = 0

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def heed(self) -> None:
        self._heeded = self._count

    def check(self) -> None:
        if self._count > self._heeded:
            raise KeyboardInterrupt

    def _press(self, *_: object) -> None:
        self._count += 1
        raise KeyboardInterrupt


def _lines(prompt: str) -> Iterator[str]:
    if prompt:
        import readline  # noqa: F401 — gives `input` its editing and history
    while True:
        try:
            yield input(prompt) if prompt else _next_line()
        except EOFError:
            if prompt:
                _say("\n")
            return


def _next_line() -> str:
    text = sys.stdin.readline()
    if not text:
        raise EOFError
    return text.rstrip("\n")


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
