"""The steps of the Containerfile, as `tools/build_image.py` runs them without a container engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import ROOT
from tools.build_image import Image, steps


def test_continued_lines_are_one_step_and_comments_none() -> None:
    found = list(steps("# a comment\nFROM python:3.13-slim\nRUN one \\\n    && two\n\nUSER roost\n"))
    assert found == [("FROM", "python:3.13-slim"), ("RUN", "one && two"), ("USER", "roost")]


def test_the_file_has_the_steps_of_an_image_that_starts_roost(tmp_path: Path) -> None:
    image = Image(tmp_path)
    for instruction, argument in steps((ROOT / "Containerfile").read_text()):
        if instruction not in ("FROM", "RUN"):  # these need root
            image.apply(instruction, argument)
    assert (tmp_path / "build" / "src" / "roost" / "__init__.py").exists()
    assert (tmp_path / "build" / "requirements" / "run.txt").exists()
    assert image.environment["ROOST_DATA"] == image.workdir == "/data"
    started = image.command([*image.start])
    assert started[:3] == ["chroot", "--userspec=1000", str(tmp_path)]
    assert started[-3:] == ["roost", "up", "--no-browser"]


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("hadolint")
    return subprocess.run([program, "--no-color", path], capture_output=True, text=True, check=False)


def test_the_linter_of_container_files_finds_nothing() -> None:
    checked = lint(ROOT / "Containerfile")
    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_linter_would_notice_a_wrong_line(tmp_path: Path) -> None:
    path = tmp_path / "Containerfile"
    path.write_text((ROOT / "Containerfile").read_text() + "RUN cd /data && pip install roost\n")
    assert "DL3042" in lint(path).stdout


@pytest.mark.parametrize(
    ("step", "reason"),
    [(("VOLUME", "/data"), "no step for: VOLUME"), (("FROM", "alpine:3"), "no release of Debian")],
)
def test_a_step_without_a_counterpart_is_refused(tmp_path: Path, step: tuple[str, str], reason: str) -> None:
    with pytest.raises(SystemExit, match=reason):
        Image(tmp_path).apply(*step)
