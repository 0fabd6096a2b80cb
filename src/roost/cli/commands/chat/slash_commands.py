"""Commands in `roost chat` that begin with a slash."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

HELP = {
    "/help": "list these commands",
    "/stop": "stop the answer, like Ctrl-C",
    "/new": "start a new talk",
    "/agent NAME": "start a new talk with this agent; without a name, list your agents",
    "/exit": "leave, like Ctrl-D",
}
_COMMAND = re.compile(r"/(\w*)(?:\s+(.*))?")


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """Typed command: its name without the slash, and what follows it."""

    name: str
    argument: str = ""


def parse(line: str) -> SlashCommand | None:
    """Return the command in a line; None for a message. A path such as `/etc/hosts` is a message."""
    found = _COMMAND.fullmatch(line.strip())
    return SlashCommand(found[1].lower(), (found[2] or "").strip()) if found else None


def message(line: str) -> str:
    """Return the message in a line: `//help` is the message `/help`."""
    return line.replace("//", "/", 1) if line.lstrip().startswith("//") else line


def help_lines() -> list[str]:
    rows = [f"{name:<12} {about}" for name, about in HELP.items()]
    return [*rows, "A line that begins with // is sent with one slash."]


def hint(name: str) -> str:
    """Return what to do instead of an unknown command."""
    known = [one.split()[0] for one in HELP]
    near = difflib.get_close_matches(f"/{name}", known, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"/{name} is not a command: {meant}/help lists them, and //{name} sends it as a message"
