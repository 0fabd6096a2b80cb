"""Logging set-up: one JSON object per line, with all `extra` fields and without secrets."""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from roost.core.values.correlation import ROOT
from roost.core.values.secrets import Redactor
from roost.log_floods import FAILURES, LOGGERS, FloodFilter
from roost.redaction import STANDARD

MOST_BYTES = 10 * 1024 * 1024
KEPT_FILES = 3
HTTP_CLIENTS = ("httpx", "httpx2")
"""Loggers that write each URL at the level info: URLs of webhooks are often secrets."""
TRACEBACK = "traceback"
"""The field of a record with a traceback for the terminal."""


class JsonFormatter(logging.Formatter):
    """Formatter that writes time, level, logger, message, and all `extra` fields; a stack trace is one field."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        # The stack below has all that the traceback for a terminal has, and more.
        entry |= {name: value for name, value in vars(record).items() if name not in STANDARD and name != TRACEBACK}
        if root := ROOT.get():
            entry.setdefault("root", root)
        if record.exc_info and record.exc_info[0] is not None:
            entry.setdefault("error_type", record.exc_info[0].__name__)
            entry["stack"] = self.formatException(record.exc_info)
        elif record.exc_text:
            entry["stack"] = record.exc_text
        if record.stack_info:
            entry["stack_info"] = record.stack_info
        line = json.dumps({name: self._clean(value) for name, value in entry.items()}, ensure_ascii=False)
        # Some readers take these for line ends, so that one entry would look like several.
        return line.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")

    def _clean(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        text = value if isinstance(value, str) else repr(value)
        return self._redactor.clean(text.encode(errors="replace").decode())


class LineFormatter(logging.Formatter):
    """Formatter for a terminal: one line with level, message and reference, without secrets and control characters.

    A failed brain or tool adds the error, its place and a traceback for its author. Other stack traces go only to the
    file.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        parts = [record.getMessage(), *self._about(vars(record))]
        reference = getattr(record, "reference", None)
        line = f"{record.levelname.lower()}: {self._plain(': '.join(parts))}" + (
            f" (reference {reference})" if reference else ""
        )
        below = str(getattr(record, TRACEBACK, "")).splitlines()
        return "\n".join([line, *(f"  {self._plain(row)}".rstrip() for row in below)])

    def _about(self, fields: Mapping[str, Any]) -> Iterator[str]:
        """Yield what has failed, and how."""
        if "brain" in fields and "session" in fields:
            where = str(fields["session"])
            yield f"brain {fields['brain']!r} in {'agent ' if '/' in where else ''}{where}"
        if "tool" in fields:
            yield f"tool {fields['tool']!r}"
        if "error" in fields:
            yield str(fields["error"])

    def _plain(self, text: str) -> str:
        return "".join(c if c.isprintable() else " " for c in self._redactor.clean(text))


def set_up(file: Path | None, *, level: str = "info", terminal: bool = True, hidden: Iterable[str] = ()) -> Redactor:
    """Send all logs to the file (kept small by rotation), and warnings to the terminal as well."""
    redactor = Redactor(os.environ, hidden)
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level.upper())
    for name in HTTP_CLIENTS:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
    if file is not None:
        root.addHandler(_file_handler(file, redactor))
    if terminal:
        shown = logging.StreamHandler(sys.stderr)
        shown.setLevel(logging.WARNING)
        shown.setFormatter(LineFormatter(redactor))
        shown.addFilter(FloodFilter(shown, loggers=LOGGERS | FAILURES))
        root.addHandler(shown)
    logging.captureWarnings(True)
    return redactor


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Rotating log file that is readable only by its owner."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding=self.encoding, line_buffering=True)


def _file_handler(file: Path, redactor: Redactor) -> logging.Handler:
    file.touch(mode=0o600, exist_ok=True)
    handler = _PrivateFile(file, maxBytes=MOST_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
    handler.setFormatter(JsonFormatter(redactor))
    handler.addFilter(FloodFilter(handler))
    return handler
