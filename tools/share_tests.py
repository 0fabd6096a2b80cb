"""pytest plugin: several processes share one test suite, file by file.

`--processes 4` collects the tests once and forks that many workers. Folders whose tests start programs take longest per
file: they come first, so that only short files are left at the end. In both parts each worker starts at its own place,
so folders stay together, and takes over what the others have left. The first writes to the terminal, the others to
`.cache/tests`, which is printed at the end. Failures are also written to `.cache/tests/failures` at once. Tests marked
`alone` measure how long something takes: they run after all others.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

LONG_FOLDERS = {"browser", "cli", "client", "cluster", "faults", "journeys", "mcp_server"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, help="processes that share the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Share the tests among forked workers; then run those that run alone."""
    count = session.config.option.processes
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    files: dict[Path, list[pytest.Item]] = {}
    alone = []
    for item in session.items:
        if item.get_closest_marker("alone"):
            alone.append(item)
        else:
            files.setdefault(item.path, []).append(item)
    folder = session.config.rootpath / ".cache" / "tests"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    session.config.pluginmanager.register(_Failures(folder / "failures"))
    gc.freeze()  # memory that is not touched stays shared
    sys.stdout.flush()
    workers: list[int] = []
    try:
        for number in range(count):
            if not (worker := os.fork()):
                workers = []
                if number:
                    _write_to(session, folder / f"{number}.txt")
                _run(session, _claimed(folder, _order(list(files.values()), number / count)))
                return True
            workers.append(worker)
        codes = [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]
        workers = []
    finally:
        for worker in workers:  # this process was interrupted
            os.kill(worker, signal.SIGINT)
    for output in sorted(folder.glob("*.txt")):
        print(output.read_text(encoding="utf-8"))
    session.config.stash[_FAILED] = [f"{number}: {code}" for number, code in enumerate(codes) if code]
    _run(session, iter(alone))
    return True


class _Failures:
    """Writes each failure when it happens: they can be read before the other tests have ended."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            text = "\n".join([report.longreprtext, *(f"--- {name}\n{output}" for name, output in report.sections)])
            with self._path.open("a", encoding="utf-8") as file:
                print(f"===== {report.nodeid}, {report.when}\n{text}\n", file=file, flush=True)


_FAILED = pytest.StashKey[list[str]]()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a worker has failed."""
    if session.config.stash.get(_FAILED, []) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the workers that have failed, with their exit codes; that of a killed one is negative."""
    if failed := config.stash.get(_FAILED, []):
        terminalreporter.write_line(f"Workers failed (their output is above): {', '.join(failed)}", red=True)


def _write_to(session: pytest.Session, path: Path) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    reporter._tw._file = path.open("w", buffering=1, encoding="utf-8")  # the file is not closed at the end: `gc.freeze`


def _run(session: pytest.Session, tests: Iterator[pytest.Item]) -> None:
    current = next(tests, None)
    while current is not None:
        following = next(tests, None)  # pytest keeps the fixtures that the next test needs
        session.config.hook.pytest_runtest_protocol(item=current, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        current = following


def _order(files: list[list[pytest.Item]], place: float) -> Iterator[list[pytest.Item]]:
    """Yield long files, then short ones, both from a place between 0 and 1 on."""
    long = [items for items in files if LONG_FOLDERS.intersection(_path(items).parts)]
    short = [items for items in files if items not in long]
    for part in (long, short):
        start = int(len(part) * place)
        yield from part[start:] + part[:start]


def _claimed(folder: Path, files: Iterable[list[pytest.Item]]) -> Iterator[pytest.Item]:
    """Yield the tests of the files that this process is the first to claim."""
    for items in files:
        try:
            (folder / f"{'-'.join(_path(items).parts)}.claimed").touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from items


def _path(items: list[pytest.Item]) -> Path:
    return items[0].path.relative_to(items[0].config.rootpath)
