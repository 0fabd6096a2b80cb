"""The other commands: lists, the doctor, errors and exit codes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roost as package
from roost.cli.app import connect as find
from roost.cli.commands.server import doctor
from roost.cli.commands.server.health_checks import Finding
from roost.cli.commands.server.up import _open_service
from roost.cli.main import GROUPS, app
from roost.core.values.secrets import Redactor
from roost.settings import load
from roost.stores.sqlite import LockFile, owner
from roost.wiring import announce
from tests.api.serving import serving
from tests.cli.running import COMMAND, command, environment, free_port, roost, up
from tests.conftest import eventually
from tests.servers import ROOT


def store(folder: Path) -> str:
    (folder / "data").mkdir(exist_ok=True)
    return f"sqlite:///{folder}/data/roost.db"


def test_talks_are_listed_for_people_and_for_programs(tmp_path: Path) -> None:
    with package.open(store(tmp_path)) as service:
        talk = service.create_talk_session("ann", profile="echo", title="Birds \x7e")
        service.create_talk_session("bob", profile="echo", title="Not hers")
    listed = json.loads(roost(tmp_path, "talks", "ls", "--json").stdout)
    assert [(t["talkSessionId"], t["title"]) for t in listed] == [(talk, "Birds ~")]
    assert "Not hers" not in roost(tmp_path, "talks", "ls").stdout


def test_a_long_talk_is_shown_whole(tmp_path: Path) -> None:
    with package.open(store(tmp_path)) as service:
        talk = service.create_talk_session("ann", profile="echo", busy="queue")
        for number in range(1_100):
            service.add_message("ann", talk, f"m{number}")
        service.stop("ann", talk, wait=5)
    messages = json.loads(roost(tmp_path, "talks", "show", talk, "--json").stdout)["messages"]
    assert [m["content"] for m in messages if m["sender"] == "user"] == [f"m{n}" for n in range(1_100)]
    assert [m["seq"] for m in messages] == list(range(1, len(messages) + 1))


def test_someone_elses_talk_is_not_found_nor_one_that_never_was(tmp_path: Path) -> None:
    with package.open(store(tmp_path)) as service:
        talk = service.create_talk_session("bob", profile="echo")
    answers = [roost(tmp_path, "talks", "show", talk_id) for talk_id in (talk, "talk_never")]
    assert answers[0].stderr == answers[1].stderr
    assert [answer.returncode for answer in answers] == [1, 1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n\nport = 'abc'", "roost.toml, line 3: port must be a whole number, not 'abc'"),
        ("[limits]\nmesage_bytes = 1", "roost.toml, line 2: there is no setting 'limits.mesage_bytes': did you mean"),
        ("port = 1\nhost = ", "roost.toml, line 2"),
    ],
)
def test_a_bad_settings_file_is_one_sentence_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "roost.toml").write_text(text)
    for asked in (["up"], ["talks", "ls"], ["chat"], ["ui"]):
        refused = roost(tmp_path, *asked)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert told in refused.stderr
        assert "Traceback" not in refused.stderr
    examined = roost(tmp_path, "doctor")
    assert examined.returncode == 1
    assert f"problem  settings: {told}" in examined.stdout


def test_an_error_has_its_stack_trace_only_when_asked_for(tmp_path: Path) -> None:
    assert "Traceback" not in roost(tmp_path, "talks", "show", "x").stderr
    assert "Traceback" in roost(tmp_path, "talks", "show", "x", ROOST_DEBUG="1").stderr


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["up", "--port", "many"], ["talks", "show"], ["talks", "ls", "--limit", "0"]]
)
def test_wrong_usage_is_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    assert roost(tmp_path, *arguments).returncode == 2


def test_a_store_that_stays_in_use_by_a_script_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "PATIENCE", 0.1)
    with package.open(store(home)):
        refused = command("talks", "ls")
    assert refused.exit_code == 1
    assert f"in use by process {os.getpid()}" in refused.stderr


def test_commands_wait_for_each_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = package.open(store(home))
    monkeypatch.setattr("roost.cli.app.connect.sleep", lambda _: other.close())
    assert command("talks", "ls").stdout.startswith("No talks.")


def test_a_server_waits_for_commands_that_have_the_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = package.open(store(home))
    monkeypatch.setattr("roost.cli.app.connect.sleep", lambda _: other.close())
    with _open_service(load(None), package.Limits(), Redactor(), reload=False) as service:
        assert service.health().workers > 0


def test_a_lock_that_another_leaves_between_two_looks_is_taken_all_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, look = home / "roost.db.lock", Path.stat
    lost: list[Path] = []

    def stat(path: Path, **options: bool) -> os.stat_result:
        if path == lock and not lost:
            lost.append(path.rename(home / "old"))
            lock.touch()
            found = look(path, **options)
            path.unlink()
            return found
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    held = LockFile(home / "roost.db")
    assert owner(lock)["pid"] == os.getpid()
    held.release()
    assert lost


def test_a_command_that_waits_for_the_store_works_through_the_server_that_begins_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with package.open(store(home)) as service, serving(service) as served:
        service.create_talk_session("ann", profile="echo", title="Birds")

        def begins(_: float) -> None:
            announce(service.roost, url=served.url, token=served.identity.token)

        monkeypatch.setattr("roost.cli.app.connect.sleep", begins)
        assert "Birds" in command("talks", "ls").stdout


# --- the doctor ------------------------------------------------------------------------------------------


def findings(folder: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = roost(folder, "doctor", "--json", *arguments, **variables)
    return done.returncode, {f["what"]: (f["status"], f["text"] + f["fix"]) for f in json.loads(done.stdout)}


def test_all_is_well_at_first(tmp_path: Path) -> None:
    code, found = findings(tmp_path, "--port", str(free_port()))
    assert (code, {status for status, _ in found.values()}) == (0, {"ok"})
    assert set(found) == {
        "python",
        "sqlite",
        "pages",
        "postgresql",
        "settings",
        "profiles",
        "model",
        "data folder",
        "store",
        "sign-in",
        "server",
        "port",
        "default profile",
    }


def test_dead_letters_are_found(tmp_path: Path) -> None:
    roost(tmp_path, "events", "publish", "untaken")
    code, found = findings(tmp_path, "--port", str(free_port()))
    assert (code, found["dead letters"][0]) == (0, "warn")
    assert found["dead letters"][1].startswith("1 dead letter: work that could not be handled")
    assert "roost dead-letters ls" in found["dead letters"][1]


@pytest.mark.usefixtures("started")
def test_a_running_server_is_found_and_asked(tmp_path: Path) -> None:
    with up(tmp_path, command="serve") as running:
        code, found = findings(tmp_path)
    assert (code, found["server"][0]) == (0, "ok")
    assert f":{running.port}, 2 workers running" in found["server"][1]


def test_whether_a_provider_can_be_asked_is_found_without_loading_all_that_asks_it(tmp_path: Path) -> None:
    settings = "[profiles.m]\nbrain = 'llm'\nmodel = 'anthropic:some'\nkey = 'NO_SUCH_KEY'\n"
    (tmp_path / "roost.toml").write_text(settings)
    looks = "import sys; from roost.cli.commands.server.doctor import run_checks; print(list(run_checks(None, {})), "
    looks += "'pydantic_ai' in sys.modules)"
    command = [COMMAND[0], "-c", looks]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True)
    assert "m: NO_SUCH_KEY is set neither in the environment nor in secrets.toml" in done.stdout
    assert "set NO_SUCH_KEY in the environment" in done.stdout
    assert done.stdout.endswith("False\n")


def test_in_a_terminal_what_is_found_is_folded_and_nothing_is_cut_in_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = Finding("model", "ok", "none: there is no file '/a/long/path/to/a/model.gguf' there", "fetch it, please")
    monkeypatch.setattr("roost.cli.commands.server.doctor.run_checks", lambda *_: iter([finding]))
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert doctor.run(None, {}, as_json=False) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok       model: none: there is no file",
        "         '/a/long/path/to/a/model.gguf'",
        "         there",
        "         → fetch it, please",
    ]


def test_a_taken_port_a_bad_brain_and_a_misspelt_variable_are_found(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text("[profiles.lost]\nbrain = 'no_such_module:brain'")
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, found = findings(tmp_path, "--port", str(other.getsockname()[1]), ROOST_PROT="1")
    assert code == 1
    assert (found["port"][0], found["profiles"][0]) == ("problem", "ok")
    text = roost(tmp_path, "doctor", "--port", str(free_port()), ROOST_PROT="1").stdout
    assert "problem  profiles: lost: the brain 'no_such_module:brain' cannot be loaded: there is no module" in text
    assert "→ add the module, install it" in text
    assert "→ did you mean ROOST_PORT?" in text


@pytest.mark.parametrize(
    ("code", "told", "fix"),
    [
        ("import os\n\nif True print()", "mine.py, line 3: SyntaxError: ", "fix it there"),
        ("import os\nimport no_such_module", "mine.py, line 2: ModuleNotFoundError: No module", "fix it there"),
        ("def brain(turn):\n    yield 1\n1 / 0", "mine.py, line 3: ZeroDivisionError: division", "fix it there"),
        ("import sys\nsys.exit(7)", "mine.py, line 2: SystemExit: 7", "fix it there"),
        ("other = 1", "mine.py has no 'brain'", "correct `brain` in the settings"),
        ("brain = 1", "the brain 'mine:brain' is not a function", "correct `brain` in the settings"),
    ],
)
def test_a_broken_module_of_a_brain_is_reported_with_file_and_line(
    tmp_path: Path, code: str, told: str, fix: str
) -> None:
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "roost.toml").write_text("[profiles.lost]\nbrain = 'mine:brain'")
    examined = roost(tmp_path, "doctor", "--port", str(free_port()))
    [problem] = [row for row in examined.stdout.split("\n") if row.startswith("problem")]
    assert examined.returncode == 1
    assert told in problem
    assert f"→ {fix}" in examined.stdout
    assert "ok       profiles: guide, echo\n" in examined.stdout


def test_starting_roost_reports_a_broken_brain_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\n\nif True print()")
    (tmp_path / "roost.toml").write_text("[profiles.lost]\nbrain = 'mine:brain'")
    refused = roost(tmp_path, "chat", stdin="hi\n")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "mine.py, line 3: SyntaxError" in refused.stderr
    with up(tmp_path, command="serve") as running:
        told = eventually(lambda: [row for row in running.output.splitlines() if "SyntaxError" in row])
    assert told[0].startswith("  Profile 'lost' cannot answer: the brain 'mine:brain' cannot be loaded")
    assert f"{tmp_path / 'mine.py'}, line 3" in told[0]


def test_a_brain_that_is_neither_built_in_nor_a_function_is_reported(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text("[profiles.lost]\nbrain = 'gide'")
    examined = roost(tmp_path, "doctor", "--port", str(free_port()))
    assert (
        "problem  profiles: lost: there is no brain 'gide': use guide, echo, llm, adk, gguf or module:function"
        in examined.stdout
    )


def test_a_host_that_up_refuses_is_found(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text('host = "0.0.0.0"')
    code, found = findings(tmp_path, "--port", str(free_port()))
    assert (code, found["host"][0]) == (1, "problem")
    assert "cannot listen on '0.0.0.0'" in found["host"][1]
    assert 'set host = "127.0.0.1"' in found["host"][1]


def test_a_file_that_is_no_database_is_found(tmp_path: Path) -> None:
    store(tmp_path)
    (tmp_path / "data" / "roost.db").write_text("this is not a database, however long it is " * 100)
    code, found = findings(tmp_path)
    assert (code, found["store"][0]) == (1, "problem")


def test_a_dead_server_is_reported(tmp_path: Path) -> None:
    with up(tmp_path, command="serve") as running:
        running.process.kill()
        running.process.wait(10)
        assert owner(running.lock)["pid"] == running.process.pid
    _, found = findings(tmp_path)
    assert found["server"][0] == "warn"
    assert roost(tmp_path, "talks", "ls").returncode == 0


def test_workers_that_stay_down_are_reported(tmp_path: Path) -> None:
    with package.open(store(tmp_path)) as service, serving(service) as served:
        announce(service.roost, url=served.url, token=served.identity.token)
        service.roost.supervisor.down = "a worker crashed too often"
        code, found = findings(tmp_path)
    assert (code, found["server"][0]) == (1, "problem")
    assert "a worker crashed too often" in found["server"][1]


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, found = findings(tmp_path, ROOST_DATA=str(tmp_path / "file" / "data"))
    assert (code, found["data folder"][0]) == (1, "problem")
    refused = roost(tmp_path, "talks", "ls", ROOST_DATA=str(tmp_path / "file" / "data"))
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)


# --- small ones ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("started")
def test_the_version_is_printed(tmp_path: Path) -> None:
    for arguments in (["version"], ["--version"]):
        printed = roost(tmp_path, *arguments)
        assert (printed.returncode, printed.stdout) == (0, f"roost {package.__version__}\n")
    assert json.loads(roost(tmp_path, "version", "--json").stdout) == {"version": package.__version__}


def test_help_is_quick_and_loads_nothing_it_does_not_need(tmp_path: Path) -> None:
    heavy = {"pydantic", "fastapi", "streamlit", "uvicorn", "rich", "httpx", "sqlite3", "asyncio"}
    program = (
        "import sys\nfrom roost.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"assert not {heavy!r} & set(sys.modules), sorted({heavy!r} & set(sys.modules))"
    )
    before = os.times()
    command = [COMMAND[0], "-c", program]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = os.times()
    assert after.children_user - before.children_user < 2  # the goal is 0.3 s; other programs do not count


def test_completion_is_there(tmp_path: Path) -> None:
    assert "doctor" in roost(tmp_path, _ROOST_COMPLETE="complete_bash", COMP_WORDS="roost do", COMP_CWORD="1").stdout


def test_a_bench_is_run_by_its_name_from_a_checkout_and_prints_json_lines(tmp_path: Path) -> None:
    done = roost(tmp_path, "bench", "reads")
    assert done.returncode == 0, done.stderr
    figures = {figure["metric"]: figure for figure in map(json.loads, done.stdout.splitlines())}
    assert list(figures) == ["calibration_loop", "empty_poll"]
    poll = figures["empty_poll"]
    assert (poll["peer"], poll["unit"], poll["n"]) == ("roost", "µs", 200_000)
    assert 0 < poll["value"] < 1_000
    assert "empty_poll" in done.stderr


def test_an_unknown_bench_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = roost(tmp_path, "bench", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no bench is called nonsense: there are " in done.stderr
    assert "reads" in done.stderr


def test_without_a_checkout_the_place_of_the_benches_is_named(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    shutil.copytree(ROOT / "src" / "roost", installed / "roost", ignore=shutil.ignore_patterns("__pycache__"))
    done = roost(tmp_path, "bench", "reads", PYTHONPATH=str(installed))
    assert (done.returncode, done.stdout) == (1, "")
    assert "make bench" in done.stderr


@pytest.mark.parametrize("group", [[], *([name] for name in GROUPS), ["talks"]])
def test_help_says_in_whole_sentences_what_commands_do(group: list[str]) -> None:
    shown = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).invoke(app, [*group, "-h"]).stdout
    listed = shown.partition("Commands:\n")[2].splitlines()
    assert listed
    assert [row for row in listed if not row.endswith((".", ".)"))] == []
    assert [row for row in listed if row.endswith("...")] == []
