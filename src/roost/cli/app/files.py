"""Files that commands write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from roost.errors import Invalid


def write_new_file(target: Path, parts: Iterator[str]) -> None:
    """Write a text in parts to a new file that only its owner can read; an error leaves no file."""
    first = next(parts)  # before the file is created: errors leave none
    try:
        file = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise Invalid(f"{str(target)!r} exists: name another file") from None
    except OSError as error:
        raise Invalid(f"{str(target)!r} cannot be written: {error.strerror}") from None
    try:
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write(first)
            out.writelines(parts)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
