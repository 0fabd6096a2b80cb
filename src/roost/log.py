"""Logs for machines: one JSON object a line, with everything that was said about the event, and no secrets."""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from roost.core.correlation import ROOT
from roost.core.secrets import Redactor

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
MOST_BYTES = 10 * 1024 * 1024
KEPT_FILES = 3


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, then all `extra` fields; a stack trace is one field."""

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
        entry |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if root := ROOT.get():
            entry.setdefault("root", root)
        if record.exc_info and record.exc_info[0] is not None:
            entry.setdefault("error_type", record.exc_info[0].__name__)
            entry["stack"] = self.formatException(record.exc_info)
        if record.stack_info:
            entry["stack_info"] = record.stack_info
        line = json.dumps({name: self._clean(value) for name, value in entry.items()}, ensure_ascii=False)
        # Ends of lines to some readers, so that one entry would look like several.
        return line.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")

    def _clean(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        text = value if isinstance(value, str) else repr(value)
        return self._redactor.clean(text.encode(errors="replace").decode())


class LineFormatter(logging.Formatter):
    """For a terminal: level and message, without stack traces, secrets and control characters."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        text = self._redactor.clean(record.getMessage())
        told = getattr(record, "reference", None)
        line = "".join(c if c.isprintable() else " " for c in text)
        return f"{record.levelname.lower()}: {line}" + (f" (reference {told})" if told else "")


def set_up(
    file: Path | None, *, level: str = "info", terminal: bool = True, hidden: Iterable[str] = ()
) -> Redactor:  # fmt: skip
    """Send all logs to the file (kept small by rotation), and warnings to the terminal as well."""
    redactor = Redactor(os.environ, hidden)
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level.upper())
    if file is not None:
        root.addHandler(_file_handler(file, redactor))
    if terminal:
        shown = logging.StreamHandler(sys.stderr)
        shown.setLevel(logging.WARNING)
        shown.setFormatter(LineFormatter(redactor))
        root.addHandler(shown)
    logging.captureWarnings(True)
    return redactor


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Each file it begins is readable for its owner alone."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding=self.encoding, line_buffering=True)


def _file_handler(file: Path, redactor: Redactor) -> logging.Handler:
    file.touch(mode=0o600, exist_ok=True)
    handler = _PrivateFile(file, maxBytes=MOST_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
    handler.setFormatter(JsonFormatter(redactor))
    return handler
