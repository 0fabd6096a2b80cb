"""`roost chat`: a talk in the terminal, or in a pipe with one message per line."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from roost.cli.app.connect import Service, current_user, open_service
from roost.cli.app.type_ahead import TypeAhead
from roost.cli.commands.approval_prompt import ApprovalPrompt
from roost.cli.commands.talks.attachments import upload
from roost.cli.commands.talks.talks import find_talk
from roost.cli.render.text import sanitize, single_line
from roost.cli.render.thoughts import Thoughts
from roost.core.failures.tracebacks import is_explained
from roost.core.talks.messages import Change, Message, Sender, Status
from roost.core.talks.side_channels import waited_for
from roost.core.values.addresses import shortened
from roost.errors import Invalid, RoostError
from roost.ports.profiles import TINY
from roost.service import AgentService
from roost.settings import Settings

INTERRUPTED = 130
STOP_PATIENCE = 2.0
UNSEEN = 0.1
"""Seconds after which a Ctrl-C that Python has not handled is sent again."""


def run(
    settings: Settings,
    profile: str | None,
    talk_id: str | None,
    agent: str | None = None,
    *,
    thoughts: bool = True,
    attach: Sequence[Path] = (),
) -> int:
    """Chat until the input ends; return the exit code. The first message has the files `attach`."""
    with open_service(settings, hosting=True) as service:
        chat = Chat(service, current_user(settings), profile, talk_id, agent)
        chat.files = upload(service, current_user(settings), attach)
        if thoughts and sys.stdout.isatty():
            chat.thoughts = Thoughts(_say)
        try:
            return chat.run(terminal=sys.stdin.isatty())
        except KeyboardInterrupt:
            _say("\n")
            return INTERRUPTED


class Chat:
    """A talk in the terminal. It is created with the first message, so that an unused chat leaves no talk."""

    def __init__(
        self, service: Service, user: str, profile: str | None, talk_id: str | None, agent: str | None = None
    ) -> None:
        self._service = service
        self._user = user
        self._profile = profile
        self._agent = agent
        self._talk: str | None = None
        self._cursor: str | None = None
        self._failed = False
        self.thoughts: Thoughts | None = None
        self.files: list[str] = []
        """Ids of uploaded files for the next message."""
        self._in_line = False
        """True if the last output did not end its line."""
        if profile is not None:
            self._check_profile(profile)
        if agent is not None:
            self._check_agent(agent)
        if talk_id is not None:
            profile = self._go_on(talk_id)
        if isinstance(service, AgentService) and self._agent is None:
            load_brain(service, profile)

    def run(self, *, terminal: bool) -> int:
        if terminal:
            self._greet()
        with _Presses() as presses:
            for text in _lines(prompt=self._prompt() if terminal else ""):
                if text.strip():
                    self._say(text)
                    if self._answer(presses, terminal=terminal):
                        break
                presses.check()
        return 1 if self._failed else 0

    def _check_profile(self, name: str) -> None:
        known = sorted(profile.name for profile in self._service.profiles())
        if name not in known:
            raise Invalid(f"there is no profile {name!r:.80}: use one of {', '.join(known)}")

    def _check_agent(self, agent: str) -> None:
        if "/" not in agent:  # else it is an agent that another user shares
            self._service.agents.get(self._user, agent.removeprefix("agent:"))

    def _go_on(self, part: str) -> str:
        """Continue a talk; return the name of its profile."""
        talk = find_talk(self._service, self._user, part)
        self._agent = talk.agent
        if self._profile is not None:
            talk = self._service.configure(self._user, talk.talk_session_id, profile=self._profile)
        self._talk = talk.talk_session_id
        self._cursor = self._service.get_messages(self._user, self._talk, limit=1).cursor
        return talk.profile

    def _greet(self) -> None:
        if self._talk is not None:
            talk = self._service.get_session(self._user, self._talk)
            name = single_line(talk.agent or self._shown(talk.profile))
            with_whom = f"{name}, in {single_line(talk.title)!r}" if talk.title else name
        else:
            with_whom = self._agent or self._shown(self._profile)
        _say(f"Talking with {single_line(with_whom)}. Ctrl-C or a new message stops the answer, Ctrl-D leaves.\n")

    def _prompt(self) -> str:
        """Return the prompt; the very small model is named in each of them."""
        profile = "" if self._agent else self._profile
        with suppress(RoostError):  # an agent of another user
            if self._agent is not None:
                name = shortened(self._agent, self._user).removeprefix("agent:")
                profile = self._service.agents.get(self._user, name).config.profile
            elif self._talk is not None:
                profile = self._service.get_session(self._user, self._talk).profile
        used = next((one for one in self._service.profiles() if profile in (None, one.name)), None)
        return f"({TINY}) > " if used is not None and used.is_tiny else "> "

    def _shown(self, profile: str | None) -> str:
        """Return the label of a profile; None is the default profile, which comes first."""
        known = self._service.profiles()
        return next((one.shown for one in known if profile in (None, one.name)), profile or "")

    def _say(self, text: str) -> None:
        if self._talk is None:
            self._talk = self._service.create_talk_session(self._user, profile=self._profile, agent=self._agent)
        files, self.files = self.files, []
        self._service.add_message(self._user, self._talk, text, attachments=files)

    def _answer(self, presses: _Presses, *, terminal: bool) -> bool:
        """Print the answer, and the answers to lines typed meanwhile; return True if the input has ended."""
        over = False
        assert self._talk is not None
        while True:
            with (
                ApprovalPrompt(self._service, self._user, self._talk, self._ask) as self._questions,
                TypeAhead(self._say_more, reading=terminal) as typing,
            ):
                self._hear(presses)
            over = over or typing.over
            if not typing.said:  # else the last line may have arrived just after the answer
                return over

    def _say_more(self, text: str) -> None:
        try:
            if not self._questions.decides(text):
                self._say(text)
        except RoostError as error:  # such as a talk that rejects messages while it is busy
            print(f"\n{single_line(str(error))}", file=sys.stderr)

    def _ask(self, text: str) -> None:
        """Print a question; the next typed line may answer it."""
        print(f"{chr(10) * self._in_line}{text}", file=sys.stderr)
        self._in_line = False

    def _hear(self, presses: _Presses) -> None:
        """Print the answer as it arrives. Ctrl-C stops it; a second Ctrl-C leaves."""
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
            self._put("\n")
        self._show_thoughts(change)
        self._put(sanitize(change.text))
        if sys.stderr.isatty() and not change.message.content and (waits := waited_for(change.notes)):
            print(f"({single_line(waits)})", file=sys.stderr)
        if change.message.status is not Status.STREAMING:
            self._end(change.message)

    def _show_thoughts(self, change: Change) -> None:
        """Print thinking and tool calls on lines of their own."""
        if self.thoughts is None:
            return
        if change.notes and self._in_line and not self.thoughts.are_open:
            self._put("\n")
        self.thoughts.grow(change.notes)
        if change.text or change.message.status is not Status.STREAMING:
            self.thoughts.close()

    def _put(self, text: str) -> None:
        if text:
            _say(text)
            self._in_line = not text.endswith("\n")

    def _end(self, message: Message) -> None:
        if message.status is Status.WITHDRAWN:
            return
        mark = " (stopped)" if message.status is Status.INTERRUPTED else ""
        self._put(mark if message.content.endswith("\n") else f"{mark}\n")
        if message.error:
            self._failed = True
            print(single_line(message.error), file=sys.stderr)
            self._show_traceback(message.run_id)

    def _show_traceback(self, run_id: str | None) -> None:
        """Print where the brain failed, unless the sentence says all there is to do."""
        if run_id is None:
            return
        with suppress(RoostError):  # the talk was deleted meanwhile
            one = self._service.runs.get(self._user, run_id)
            if one.traceback and not is_explained(one.run.fault, one.traceback):
                print(sanitize(one.traceback), file=sys.stderr)


def load_brain(service: AgentService, profile: str | None) -> None:
    """Load the brain before the first message, so that its author sees errors at once. Raise BrainFailed."""
    brains = service.roost.context.brains
    named = brains.profile(profile or brains.default)
    if brains.loaded(named) is None:
        brains.load(named)


class _Presses:
    """Counter of Ctrl-C, so that one raised where Python swallows it, as in garbage collection, is not lost.

    Python also misses one that arrives just before `input` waits for a key. Its byte in the wakeup pipe then remains
    unread, and a thread sends the signal again.
    """

    def __init__(self) -> None:
        self._count = self._heeded = 0
        self._is_over = False

    def __enter__(self) -> Self:
        self._pending, self._wakeup = os.pipe()
        for end in (self._pending, self._wakeup):
            os.set_blocking(end, False)
        self._before = signal.signal(signal.SIGINT, self._press)
        signal.set_wakeup_fd(self._wakeup)
        self._thread = threading.Thread(target=self._repeat, name="roost-presses", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, self._before)
        self._is_over = True
        os.close(self._wakeup)
        self._thread.join(1.0)
        os.close(self._pending)

    def heed(self) -> None:
        self._heeded = self._count

    def check(self) -> None:
        if self._count > self._heeded:
            raise KeyboardInterrupt

    def _press(self, *_: object) -> None:
        with suppress(BlockingIOError):
            os.read(self._pending, 1024)
        self._count += 1
        raise KeyboardInterrupt

    def _repeat(self) -> None:
        main = threading.main_thread().ident
        while not self._is_over:
            select.select([self._pending], [], [])
            time.sleep(UNSEEN)
            with suppress(BlockingIOError):  # it was handled
                if signal.SIGINT in os.read(self._pending, 1024) and main is not None:
                    signal.pthread_kill(main, signal.SIGINT)


def _lines(prompt: str) -> Iterator[str]:
    if prompt:
        import readline  # noqa: F401 — adds editing and history to `input`
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
