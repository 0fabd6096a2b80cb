"""pytest plugin: several pytest processes share one test suite, file by file.

`--share FOLDER --worker 1/3` runs the files that this process claims first by creating a file in the folder.
Each process starts at its own place in the list, so folders stay together, and takes over what is left at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=Path, help="folder of the claims; the same for all processes of a run")
    parser.addoption("--worker", default="1/1", help="number of this process, and how many there are: 1/3")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests of every file that no other process has claimed."""
    folder: Path | None = session.config.option.share
    if folder is None or session.config.option.collectonly or session.testsfailed:
        return None
    tests: dict[Path, list[pytest.Item]] = {}
    for item in session.items:
        tests.setdefault(item.path, []).append(item)
    files = list(tests.values())
    number, count = map(int, session.config.option.worker.split("/"))
    start = len(files) * (number - 1) // count
    mine = _claimed(folder, files[start:] + files[:start])
    current = next(mine, None)
    while current is not None:
        following = next(mine, None)  # pytest keeps the fixtures that the next test needs
        session.config.hook.pytest_runtest_protocol(item=current, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        current = following
    return True


def _claimed(folder: Path, files: list[list[pytest.Item]]) -> Iterator[pytest.Item]:
    """Yield the tests of the files that this process is the first to claim."""
    for items in files:
        path = items[0].path.relative_to(items[0].config.rootpath)
        try:
            (folder / f"{'-'.join(path.parts)}.claimed").touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from items
