"""Answers in `roost chat`: text, thinking, failures and tracebacks as they arrive."""

from __future__ import annotations

import sys
from contextlib import suppress

from roost.cli.app.connect import Service
from roost.cli.commands.chat.printers import Printer, write
from roost.cli.render.text import sanitize, single_line
from roost.cli.render.thoughts import Thoughts
from roost.core.failures.tracebacks import is_explained
from roost.core.talks.messages import Change, Message, Status
from roost.core.talks.side_channels import waited_for
from roost.errors import RoostError


class AnswerPrinter:
    """Shows the answers of a talk. `has_failed`: one of them ended with an error."""

    def __init__(self, service: Service, user: str, printer: Printer, *, thoughts: bool) -> None:
        self._service = service
        self._user = user
        self._printer = printer
        self._thoughts = Thoughts(write) if thoughts else None
        self.has_failed = False

    def show(self, change: Change) -> None:
        if change.reset:
            self._printer.end_line()
        self._show_thoughts(change)
        self._printer.put(change.text)
        if sys.stderr.isatty() and not change.message.content and (waits := waited_for(change.notes)):
            self.note(f"({single_line(waits)})")
        if change.message.status is not Status.STREAMING:
            self._end(change.message)

    def note(self, text: str) -> None:
        """Print a line of our own, on standard error."""
        self._printer.end_line()
        print(text, file=sys.stderr)

    def _show_thoughts(self, change: Change) -> None:
        """Print thinking and tool calls on lines of their own."""
        if self._thoughts is None:
            return
        if change.notes and not self._thoughts.are_open:
            self._printer.end_line()
        self._thoughts.grow(change.notes)
        if change.text or change.message.status is not Status.STREAMING:
            self._thoughts.close()

    def _end(self, message: Message) -> None:
        if message.status is Status.WITHDRAWN:
            return
        self._printer.end("(stopped)" if message.status is Status.INTERRUPTED else "")
        if message.error:
            self.has_failed = True
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
