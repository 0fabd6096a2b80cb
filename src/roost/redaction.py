"""Redaction of secrets in the logs of a program that embeds Roost."""

from __future__ import annotations

import logging
from collections.abc import Callable

from roost.core.values.secrets import Redactor

STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
"""Attributes of a log record that are not `extra` fields."""
LOGGERS = ("roost", "google_adk", "google_genai", "mcp")
"""Loggers whose records are redacted: Roost's own, and those of libraries it runs."""


class RedactingHandler(logging.Handler):
    """Handler that redacts records before the handlers of the program see them.

    It is a handler of a parent logger, since those of the root come after it and a filter there would not be asked.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._clean(record)
        except Exception:  # as other handlers do: what is logged must not break the program
            self.handleError(record)
        self._as_last_resort(record)

    def _clean(self, record: logging.LogRecord) -> None:
        clean = self._redactor.clean
        text = record.getMessage()
        if (cleaned := clean(text)) != text:
            record.msg, record.args = cleaned, ()
        for name, value in list(vars(record).items()):
            if name not in STANDARD and not isinstance(value, bool | int | float | None):
                text = value if isinstance(value, str) else repr(value)
                if (cleaned := clean(text)) != text:
                    setattr(record, name, cleaned)
        self._clean_trace(record)

    def _clean_trace(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            if (cleaned := self._redactor.clean(trace)) != trace:  # otherwise the exception would be printed unredacted
                record.__dict__.setdefault("error_type", record.exc_info[0].__name__)
                record.exc_info, record.exc_text = None, cleaned

    def _as_last_resort(self, record: logging.LogRecord) -> None:
        """Print a record if logging is not set up: Python does so only without any handler."""
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(not isinstance(handler, RedactingHandler) for handler in logger.handlers):
                return
            logger = logger.parent if logger.propagate else None
        last, handlers = logging.lastResort, logging.getLogger(record.name.partition(".")[0]).handlers
        if last is not None and handlers and handlers[-1] is self and record.levelno >= last.level:
            last.handle(record)


def redact(redactor: Redactor) -> Callable[[], None]:
    """Redact Roost's log records in a program with its own logging; return a function that stops it."""
    handler = RedactingHandler(redactor)
    for name in LOGGERS:
        logging.getLogger(name).addHandler(handler)

    def end() -> None:
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(handler)

    return end
