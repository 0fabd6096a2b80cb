"""`roost chat`: a talk in the terminal, or through a pipe, one message a line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import Self

from roost.cli.deciding import Questions
from roost.cli.find import Service, service_of, user_of
from roost.cli.talks import found
from roost.cli.text import line, plain
from roost.cli.thoughts import Thoughts
from roost.cli.typing_ahead import Typing
from roost.core.messages import Change, Message, Sender, Status
from roost.core.notes import waited_for
from roost.errors import Invalid, RoostError
from roost.service import AgentService
from roost.settings import Settings

INTERRUPTED = 130
STOP_PATIENCE = 2.0


def run(
    settings: Settings, profile: str | None, talk_id: str | None, agent: str | None = None, *, thoughts: bool = True
) -> int:  # fmt: skip
    """Talk until the input ends; the exit code."""
    with service_of(settings, hosting=True) as service:
        chat = Chat(service, user_of(settings), profile, talk_id, agent)
        if thoughts and sys.stdout.isatty():
            chat.thoughts = Thoughts(_say)
        try:
            return chat.run(terminal=sys.stdin.isatty())
        except KeyboardInterrupt:
            _say("\n")
            return INTERRUPTED


class Chat:
    """One talk; it is made with the first message, so that looking in leaves nothing behind."""

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
        self._in_line = False
        """Whether what was printed last has not ended its line."""
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
            for text in _lines(prompt="> " if terminal else ""):
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
        if "/" not in agent:  # else it is someone else's, who may share it
            self._service.agents.get(self._user, agent.removeprefix("agent:"))

    def _go_on(self, part: str) -> str:
        """Take up a talk; the name of its profile."""
        talk = found(self._service, self._user, part)
        self._agent = talk.agent
        if self._profile is not None:
            talk = self._service.configure(self._user, talk.talk_session_id, profile=self._profile)
        self._talk = talk.talk_session_id
        self._cursor = self._service.get_messages(self._user, self._talk, limit=1).cursor
        return talk.profile

    def _greet(self) -> None:
        if self._talk is not None:
            talk = self._service.get_session(self._user, self._talk)
            name = line(talk.agent or self._shown(talk.profile))
            with_whom = f"{name}, in {line(talk.title)!r}" if talk.title else name
        else:
            with_whom = self._agent or self._shown(self._profile)
        _say(f"Talking with {line(with_whom)}. Ctrl-C or a new message stops an answer, Ctrl-D leaves.\n")

    def _shown(self, profile: str | None) -> str:
        """As people read it; None: the default one, which comes first."""
        known = self._service.profiles()
        return next((one.shown for one in known if profile in (None, one.name)), profile or "")

    def _say(self, text: str) -> None:
        if self._talk is None:
            self._talk = self._service.create_talk_session(self._user, profile=self._profile, agent=self._agent)
        self._service.add_message(self._user, self._talk, text)

    def _answer(self, presses: _Presses, *, terminal: bool) -> bool:
        """Print the answer, and those to what is typed meanwhile; whether the input has ended."""
        over = False
        assert self._talk is not None
        while True:
            with (
                Questions(self._service, self._user, self._talk, self._ask) as self._questions,
                Typing(self._say_more, reading=terminal) as typing,
            ):
                self._hear(presses)
            over = over or typing.over
            if not typing.said:  # else the last line may have come just after the answer
                return over

    def _say_more(self, text: str) -> None:
        try:
            if not self._questions.decides(text):
                self._say(text)
        except RoostError as error:  # such as a talk that rejects what comes while it is busy
            print(f"\n{line(str(error))}", file=sys.stderr)

    def _ask(self, text: str) -> None:
        """What is typed now may be a person's word on this."""
        print(f"{chr(10) * self._in_line}{text}", file=sys.stderr)
        self._in_line = False

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
            self._put("\n")
        self._show_thoughts(change)
        self._put(plain(change.text))
        if sys.stderr.isatty() and not change.message.content and (waits := waited_for(change.notes)):
            print(f"({line(waits)})", file=sys.stderr)
        if change.message.status is not Status.STREAMING:
            self._end(change.message)

    def _show_thoughts(self, change: Change) -> None:
        """Beside the answer, each on lines of its own."""
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
            print(line(message.error), file=sys.stderr)


def load_brain(service: AgentService, profile: str | None) -> None:
    """Before anything is said: whoever sits here can mend a brain, and is told where. Raises BrainFailed."""
    brains = service.roost.shop.brains
    named = brains.profile(profile or brains.default)
    if brains.loaded(named) is None:
        brains.load(named)


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
