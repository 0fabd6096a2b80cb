"""Files of local models: their names, and why one cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from roost.errors import BrainFailed

DEFAULT = "smollm2"
SUFFIX = ".gguf"
MAGIC = b"GGUF"
BESIDES = 256 * 2**20
"""RAM in bytes that a model needs besides its file."""
_NAME = re.compile(r"\w[\w.+-]{0,99}")


class ModelFiles:
    """Models in a folder by name, and those that the settings name by path; others may not be used."""

    def __init__(self, folder: Path, models: Iterable[str | None] = ()) -> None:
        self.folder = folder
        self._paths = {model for model in models if model and _is_path(model)}

    def file(self, model: str | None) -> Path:
        """Return the path of a model, which may not exist; raise BrainFailed for an invalid name."""
        model = model or DEFAULT
        if model in self._paths:
            return Path(model).expanduser().absolute()
        if _is_path(model):
            raise missing(f"no profile of the settings has the model {model!r:.80}", "use one by its name")
        if not _NAME.fullmatch(model):
            raise missing(f"{model!r:.80} is not the name of a model", f"use one such as {DEFAULT!r}")
        return self.folder / f"{model}{SUFFIX}"

    def check(self, model: str | None) -> None:
        """Raise BrainFailed if the model cannot be used here."""
        file = self.file(model)
        if find_spec("xllamacpp") is None:
            raise missing("models on this machine need an extra", "pip install 'roost[local]'", kind="extra")
        _check_content(file, model or DEFAULT)
        _check_memory(file)

    def why_not(self, model: str | None = None) -> BrainFailed | None:
        """Return why the model cannot be used here, with advice; None if it can. Loads nothing."""
        try:
            self.check(model)
        except BrainFailed as error:
            return error
        return None


def files_in(folder: Path) -> list[Path]:
    """Return the models in a folder."""
    return sorted(file for file in folder.glob(f"*{SUFFIX}") if file.is_file() and not file.name.startswith("."))


def _is_path(model: str) -> bool:
    return "/" in model or model.endswith(SUFFIX)


def missing(what: str, advice: str, *, kind: str = "model") -> BrainFailed:
    return BrainFailed(f"{what}: {advice}", kind=kind, advice=advice)


def _check_content(file: Path, model: str) -> None:
    fetch = f"fetch {'it' if model == DEFAULT else 'a small one'} with `roost models pull {DEFAULT}`"
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(MAGIC))
    except FileNotFoundError:
        raise missing(f"there is no model {str(file)!r}", fetch) from None
    except OSError as error:
        raise missing(f"the model {str(file)!r} cannot be read", error.strerror or "see why") from error
    if begins != MAGIC:
        raise missing(f"{str(file)!r} is not a GGUF file", f"remove it, and {fetch}")


def _check_memory(file: Path) -> None:
    needed, free = file.stat().st_size + BESIDES, available_memory()
    if free is not None and needed > free:
        what = f"the model {file.stem!r} needs {needed // 2**20:,} MiB of RAM, and {free // 2**20:,} MiB are free"
        raise missing(what, "close other programs, or use a smaller model")


def available_memory() -> int | None:
    """Return the available RAM in bytes; None if the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None
