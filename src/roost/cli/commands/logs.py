"""`roost logs`: the log of the server on this machine, filtered and followed."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from roost.cli.render.text import sanitize, single_line
from roost.errors import NotFound
from roost.log import KEPT_FILES
from roost.settings import Settings
from roost.wiring import data_folder

BLOCK = 64 * 1024
POLL = 0.2
"""Seconds between two looks at a file that is followed."""
LEVELS = ("debug", "info", "warning", "error", "critical")
COLORS = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m", "debug": "\x1b[2m"}
PLAIN = "\x1b[0m"
HEAD = ("time", "level", "logger", "message", "stack", "stack_info")


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Entries to show: of this level or a higher one, which name this run and this talk."""

    level: str = "debug"
    run: str = ""
    talk: str = ""

    def shows(self, entry: dict[str, Any]) -> bool:
        level = str(entry.get("level", "info"))
        rank = LEVELS.index(level) if level in LEVELS else LEVELS.index("info")
        return rank >= LEVELS.index(self.level) and all(_names(entry, one) for one in (self.run, self.talk) if one)


def _names(entry: dict[str, Any], part: str) -> bool:
    """Return whether a field of an entry has this id, or this part of one."""
    return any(part.lower() in value.lower() for value in entry.values() if isinstance(value, str))


def run(settings: Settings, chosen: LogFilter, *, lines: int, follow: bool, as_json: bool) -> None:
    """Print the newest entries, oldest first; with `follow`, each new one as well until Ctrl-C."""
    file = data_folder(settings.data) / "roost.log"
    if not file.exists():
        raise NotFound(f"there is no log at {str(file)!r}: Roost writes it while it runs")
    with file.open("rb") as opened:
        end = opened.seek(0, os.SEEK_END)
        for text in reversed(list(_newest(file, opened, end, chosen, lines))):
            _print(text, as_json=as_json)
        opened.seek(end)
        if follow:
            for text in _following(file, opened):
                if chosen.shows(_parsed(text)):
                    _print(text, as_json=as_json)


def _newest(file: Path, opened: IO[bytes], end: int, chosen: LogFilter, lines: int) -> Iterator[bytes]:
    """Yield the newest entries that are shown, newest first, also from files that were rotated away."""
    found = 0
    for one in _backwards_through_files(file, opened, end):
        if found == lines:
            return
        if one.strip() and chosen.shows(_parsed(one)):
            found += 1
            yield one


def _backwards_through_files(file: Path, opened: IO[bytes], end: int) -> Iterator[bytes]:
    yield from _backwards(opened, end)
    for number in range(1, KEPT_FILES + 1):
        try:
            with file.with_name(f"{file.name}.{number}").open("rb") as older:
                yield from _backwards(older, older.seek(0, os.SEEK_END))
        except FileNotFoundError:
            return


def _backwards(file: IO[bytes], end: int) -> Iterator[bytes]:
    """Yield the lines before `end`, last first, a block at a time: the file may be large."""
    rest = b""
    while end > 0:
        start = max(0, end - BLOCK)
        file.seek(start)
        first, *lines = (file.read(end - start) + rest).split(b"\n")
        yield from reversed(lines)
        rest, end = first, start
    yield rest


def _following(path: Path, opened: IO[bytes]) -> Generator[bytes]:
    """Yield each line that is added; continue in the new file when this one is rotated away."""
    with ExitStack() as files:
        file, rest = opened, b""
        while True:
            is_replaced = _is_replaced(path, file)  # first: what was added before the renaming is read then
            while data := file.read(BLOCK):
                *whole, rest = (rest + data).split(b"\n")
                yield from whole
            if is_replaced:
                files.close()
                file, rest = files.enter_context(path.open("rb")), b""
            else:
                sys.stdout.flush()
                time.sleep(POLL)


def _is_replaced(path: Path, file: IO[bytes]) -> bool:
    try:
        return not os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False  # between the renaming and the new file


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        entry = None
    return entry if isinstance(entry, dict) else {"message": text.decode(errors="replace")}


def _print(text: bytes, *, as_json: bool) -> None:
    if as_json:
        print(sanitize(text.decode(errors="replace")))
        return
    entry = _parsed(text)
    level = single_line(str(entry.get("level", "")))
    color = COLORS.get(level, "") if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else ""
    more = " ".join(f"{single_line(name)}={_short(value)}" for name, value in entry.items() if name not in HEAD)
    message = single_line(str(entry.get("message", "")))
    row = f"{_time(entry)} {level:<8}{message}{'  ' if more else ''}{more}"
    print(f"{color}{row}{PLAIN if color else ''}")
    for line in sanitize(str(entry.get("stack") or "")).splitlines():
        print(f"    {line}")


def _short(value: Any) -> str:
    text = single_line(str(value))
    return repr(text) if " " in text else text


def _time(entry: dict[str, Any]) -> str:
    try:
        return f"{datetime.fromisoformat(str(entry.get('time'))).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return "-" * 19
