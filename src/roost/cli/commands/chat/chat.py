"""`roost chat`: a talk in the terminal, or one message and its answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from roost.cli.app.connect import Service, current_user, open_service
from roost.cli.app.type_ahead import TypeAhead
from roost.cli.commands.chat import slash_commands as slash
from roost.cli.commands.chat.answers import AnswerPrinter
from roost.cli.commands.chat.approval_prompt import ApprovalPrompt
from roost.cli.commands.chat.key_presses import KeyPresses
from roost.cli.commands.chat.messages import single_message, typed_lines
from roost.cli.commands.chat.printers import printer, write
from roost.cli.commands.talks.attachments import upload
from roost.cli.commands.talks.talks import find_talk
from roost.cli.render.text import single_line
from roost.core.talks.messages import Sender
from roost.core.values.addresses import shortened
from roost.errors import Invalid, RoostError
from roost.ports.profiles import TINY
from roost.service import AgentService
from roost.settings import Settings

INTERRUPTED = 130
STOP_PATIENCE = 2.0
AGENTS = 50


def run(
    settings: Settings,
    profile: str | None,
    talk_id: str | None,
    agent: str | None = None,
    *,
    message: str | None = None,
    thoughts: bool = True,
    attach: Sequence[Path] = (),
) -> int:
    """Chat until the input ends, or send one message; return the exit code. The first message has the files."""
    is_typed = message is None and sys.stdin.isatty()
    text = None if is_typed else single_message(message)
    with open_service(settings, hosting=True) as service:
        user = current_user(settings)
        chat = Chat(service, user, profile, talk_id, agent, thoughts=thoughts and sys.stdout.isatty())
        chat.files = upload(service, user, attach)
        try:
            return chat.run() if text is None else chat.ask(text)
        except KeyboardInterrupt:
            write("\n")
            return INTERRUPTED


class Chat:
    """A talk in the terminal. It is created with the first message, so that an unused chat leaves no talk."""

    def __init__(
        self,
        service: Service,
        user: str,
        profile: str | None,
        talk_id: str | None,
        agent: str | None = None,
        *,
        thoughts: bool = False,
    ) -> None:
        self._service = service
        self._user = user
        self._profile = profile
        self._agent = agent
        self._talk: str | None = None
        self._cursor: str | None = None
        self._answers = AnswerPrinter(service, user, printer(), thoughts=thoughts)
        self._is_over = self._was_stopped = False
        self.files: list[str] = []
        """Ids of uploaded files for the next message."""
        if profile is not None:
            self._check_profile(profile)
        if agent is not None:
            self._check_agent(agent)
        if talk_id is not None:
            profile = self._go_on(talk_id)
        if isinstance(service, AgentService) and self._agent is None:
            load_brain(service, profile)

    def run(self) -> int:
        """Send each line that is typed; return the exit code."""
        self._greet()
        with KeyPresses() as presses:
            for line in typed_lines(self._prompt):
                if (command := slash.parse(line)) is not None:
                    self._command(command)
                elif line.strip():
                    self._say(slash.message(line))
                    self._answer(presses, is_typed=True)
                if self._is_over:
                    break
                presses.check()
        return 1 if self._answers.has_failed else 0

    def ask(self, text: str) -> int:
        """Send one message and print its answer; return the exit code."""
        if not text:
            raise Invalid("there is no message: give one as an argument or in a pipe, or type it in a terminal")
        with KeyPresses() as presses:
            self._say(text)
            self._answer(presses, is_typed=sys.stdin.isatty())
        return INTERRUPTED if self._was_stopped else 1 if self._answers.has_failed else 0

    # --- partner ---------------------------------------------------------------------------------

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
            partner = f"{name}, in {single_line(talk.title)!r}" if talk.title else name
        else:
            partner = self._agent or self._shown(self._profile)
        write(f"Talking with {single_line(partner)}. Ctrl-C stops the answer, Ctrl-D leaves, /help lists commands.\n")

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

    # --- commands --------------------------------------------------------------------------------

    def _command(self, command: slash.SlashCommand) -> None:
        """Execute a command that was typed at the prompt."""
        match command.name:
            case "new":
                self._start_new()
            case "agent":
                self._choose_agent(command.argument)
            case "stop":
                self._answers.note("No answer is being written.")
            case _:
                self._command_any_time(command)

    def _command_any_time(self, command: slash.SlashCommand) -> None:
        match command.name:
            case "help":
                self._answers.note("\n".join(slash.help_lines()))
            case "exit":
                self._is_over = True
            case _:
                self._answers.note(single_line(slash.hint(command.name)))

    def _command_meanwhile(self, command: slash.SlashCommand) -> None:
        """Execute a command that was typed during an answer."""
        if command.name in ("new", "agent"):
            return self._answers.note(f"/{command.name} works after the answer: /stop stops it")
        if command.name in ("stop", "exit") and self._talk is not None:
            self._service.stop(self._user, self._talk)
        if command.name != "stop":
            self._command_any_time(command)
        return None

    def _start_new(self) -> None:
        self._talk = self._cursor = None
        self._greet()

    def _choose_agent(self, name: str) -> None:
        try:
            if name:
                self._check_agent(name)
                self._agent, self._profile = name, None
                return self._start_new()
            known = [one.agent_id for one in self._service.agents.list(self._user, limit=AGENTS)]
            self._answers.note(f"Your agents: {single_line(', '.join(known))}" if known else "You have no agents.")
        except RoostError as error:
            self._answers.note(single_line(str(error)))
        return None

    # --- messages --------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if self._talk is None:
            self._talk = self._service.create_talk_session(self._user, profile=self._profile, agent=self._agent)
        files, self.files = self.files, []
        self._service.add_message(self._user, self._talk, text, attachments=files)

    def _answer(self, presses: KeyPresses, *, is_typed: bool) -> None:
        """Print the answer, and the answers to lines typed meanwhile."""
        assert self._talk is not None
        while True:
            with (
                ApprovalPrompt(self._service, self._user, self._talk, self._answers.note) as self._questions,
                TypeAhead(self._say_more, reading=is_typed) as typing,
            ):
                self._hear(presses)
            self._is_over = self._is_over or typing.over
            if not typing.said:  # else the last line may have arrived just after the answer
                return

    def _say_more(self, text: str) -> None:
        try:
            if (command := slash.parse(text)) is not None:
                self._command_meanwhile(command)
            elif not self._questions.decides(text):
                self._say(slash.message(text))
        except RoostError as error:  # such as a talk that rejects messages while it is busy
            self._answers.note(single_line(str(error)))

    def _hear(self, presses: KeyPresses) -> None:
        """Print the answer as it arrives. Ctrl-C stops it; a second Ctrl-C leaves."""
        try:
            self._listen()
        except KeyboardInterrupt:
            assert self._talk is not None
            self._was_stopped = True
            presses.heed()
            self._service.stop(self._user, self._talk, wait=STOP_PATIENCE)
            self._listen()

    def _listen(self) -> None:
        assert self._talk is not None
        for change in self._service.stream_messages(self._user, self._talk, after=self._cursor):
            self._cursor = change.cursor
            if change.message.sender is Sender.AGENT:
                self._answers.show(change)


def load_brain(service: AgentService, profile: str | None) -> None:
    """Load the brain before the first message, so that its author sees errors at once. Raise BrainFailed."""
    brains = service.roost.context.brains
    named = brains.profile(profile or brains.default)
    if brains.loaded(named) is None:
        brains.load(named)
