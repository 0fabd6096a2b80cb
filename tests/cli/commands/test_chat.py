"""`roost chat`: in a terminal and through a pipe, with a server and without."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from roost.cli.render.text import sanitize, single_line
from tests.cli.running import COMMAND, environment, roost, up
from tests.cli.screens import on_screen
from tests.cli.terminals import terminal
from tests.conftest import eventually

BRAINS = """
import asyncio, os
import roost
async def endless(turn):
    yield "part1 "
    await asyncio.sleep(3600)
async def listener(turn):
    yield f"heard {turn.text} "
    while turn.text == "go" and not os.path.exists("gate"):
        await asyncio.sleep(0.01)
    yield "to its end"
async def painter(turn):
    yield "\\x1b]0;owned\\x07\\x1b[31mred\\x1b"
    yield "[0m \\x9b2J\\r\\n\\x08end\\u202e"
@roost.tool(approval=True)
def launch(rocket: str) -> str:
    return f"{rocket} is up"
async def pilot(turn):
    yield "ready "
    try:
        yield await turn.call_tool(launch, {"rocket": "ariel"})
    except roost.ToolFailed as error:
        yield f"on the ground: {error}"
async def refuses(turn):
    yield "well "
    raise roost.BrainFailed("not this", kind="refused")
async def broken(turn):
    yield "so far "
    raise ValueError("hunter2")
"""
NAMES = ("pilot", "endless", "listener", "painter", "refuses", "broken")
PROFILES = "".join(f"[profiles.{name}]\nbrain = 'brains:{name}'\n" for name in NAMES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "brains.py").write_text(BRAINS)
    (tmp_path / "roost.toml").write_text(PROFILES)
    return tmp_path


@pytest.mark.usefixtures("started")
def test_a_piped_file_is_one_message(folder: Path) -> None:
    done = roost(folder, "chat", "--profile", "echo", stdin="hello there\n\n/help\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello there\n\n/help\n", "")
    assert answers(folder)[0] == ("hello there\n\n/help", "complete")


def test_one_message_is_answered_and_the_command_ends(folder: Path) -> None:
    for arguments, piped, said in (
        (["hello"], "", "hello\n"),
        (["sum up:"], "a,b\n1,2\n", "sum up:\n\na,b\n1,2\n"),
        (["-"], "from a pipe", "from a pipe\n"),
    ):
        done = roost(folder, "chat", *arguments, "--profile", "echo", stdin=piped)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    failed = roost(folder, "chat", "go", "--profile", "refuses")
    assert (failed.returncode, failed.stdout) == (1, "well \n")


def test_what_is_no_message_is_refused_and_leaves_no_talk(folder: Path) -> None:
    for piped in ("", " \n\n"):
        refused = roost(folder, "chat", stdin=piped)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("roost: there is no message: give one as an argument")
    binary = subprocess.run(
        [*COMMAND, "chat"], input=b"\xff\xfe\x00", cwd=folder, env=environment(folder), capture_output=True, check=False
    )
    assert (binary.returncode, b"send a file with --attach FILE" in binary.stderr) == (1, True)
    assert "No talks." in roost(folder, "talks", "ls").stdout


def test_a_talk_is_continued(folder: Path) -> None:
    roost(folder, "chat", "--profile", "echo", stdin="one\n")
    heading, row = roost(folder, "talks", "ls").stdout.splitlines()
    assert heading.split() == ["ID", "MESSAGES", "LAST", "USED", "WITH", "TITLE"]
    assert roost(folder, "chat", "--talk", row.split()[0], stdin="two\n").stdout == "two\n"
    assert len(roost(folder, "talks", "ls").stdout.splitlines()) == 2


def test_it_is_the_same_through_a_running_server(folder: Path) -> None:
    with up(folder, command="serve"):
        assert roost(folder, "chat", "--profile", "echo", stdin="hello there\n").stdout == "hello there\n"
        assert "hello there" in roost(folder, "talks", "ls").stdout
    assert "hello there" in roost(folder, "talks", "ls").stdout


def test_what_an_agent_says_cannot_touch_the_terminal(folder: Path) -> None:
    said = roost(folder, "chat", "--profile", "painter", stdin="go\n").stdout
    assert "red" in said
    assert all(c == "\n" or (c.isprintable() and c not in "\u202e") for c in said)
    talk = roost(folder, "talks", "ls").stdout.splitlines()[1].split()[0]
    assert "\x1b" not in roost(folder, "talks", "show", talk).stdout


@pytest.mark.parametrize("server", [False, True])
def test_a_failure_is_one_sentence_the_traceback_of_the_brain_and_an_exit_code(folder: Path, server: bool) -> None:
    with up(folder, command="serve") if server else nullcontext():
        failed = roost(folder, "chat", "--profile", "broken", stdin="go\n")
    assert (failed.returncode, failed.stdout) == (1, "so far \n")
    sentence, *traceback = failed.stderr.splitlines()
    assert "reference" in sentence
    assert "hunter2" not in sentence
    number = next(n for n, text in enumerate(BRAINS.splitlines(), 1) if "hunter2" in text)
    assert traceback == [
        "Traceback (most recent call last):",
        f'  File "{folder}/brains.py", line {number}, in broken',
        '    raise ValueError("hunter2")',
        "ValueError: hunter2",
    ]


def test_a_failure_that_its_sentence_explains_has_no_traceback(folder: Path) -> None:
    failed = roost(folder, "chat", "--profile", "refuses", stdin="go\n")
    assert failed.returncode == 1
    assert failed.stderr.startswith("The model refused to answer this")
    assert len(failed.stderr.splitlines()) == 1


def test_the_author_finds_the_traceback_in_the_terminal_of_the_server_and_with_the_run(folder: Path) -> None:
    with up(folder, command="serve") as server:
        roost(folder, "chat", "--profile", "broken", stdin="go\n")
        run = json.loads(roost(folder, "runs", "ls", "--json").stdout)[0]["runId"]
        shown = roost(folder, "runs", "show", run).stdout
        told = json.loads(roost(folder, "runs", "show", run, "--json").stdout)
    assert shown.endswith(told["traceback"] + "\n")
    assert told["traceback"].endswith('    raise ValueError("hunter2")\nValueError: hunter2')
    printed = server.output
    assert "error: a run has failed: brain 'broken' in talk_" in printed
    assert f"ValueError: hunter2 at brains.py:{told['traceback'].partition('line ')[2].partition(',')[0]}" in printed
    assert '\n      raise ValueError("hunter2")\n  ValueError: hunter2\n' in printed


def test_ctrl_c_stops_the_answer_and_a_second_one_leaves(folder: Path) -> None:
    with terminal(folder, "chat", "--profile", "endless") as person:
        person.becomes("> ")
        person.type("go\n")
        person.becomes("part1 ")
        person.process.send_signal(signal.SIGINT)
        person.becomes("(stopped)")
        person.process.send_signal(signal.SIGINT)
        assert person.process.wait(15) == 130
    shown = roost(folder, "talks", "ls", "--json").stdout
    assert '"messages": 2' in shown


def answers(folder: Path) -> list[tuple[str, str]]:
    shown = json.loads(roost(folder, "talks", "show", "talk_", "--json").stdout)
    return [(m["content"], m["status"]) for m in shown["messages"]]


@pytest.mark.parametrize("server", [False, True])
def test_a_line_typed_during_an_answer_interrupts_it_and_is_answered(folder: Path, server: bool) -> None:
    with (
        up(folder, command="serve") if server else nullcontext(),
        terminal(folder, "chat", "--profile", "listener") as person,
    ):
        person.becomes("> ")
        person.type("go\n")
        person.becomes("heard go ")
        person.type("more\n")
        person.becomes("heard more to its end\r\n> ")
        person.type("\x04")
        assert person.process.wait(15) == 0
        assert person.shows("heard go  (stopped)") or person.shows("more\r\n (stopped)")
    assert answers(folder) == [
        ("go", "complete"),
        ("heard go ", "interrupted"),
        ("more", "complete"),
        ("heard more to its end", "complete"),
    ]


@pytest.mark.parametrize(("word", "end"), [("y", "ariel is up"), ("No", "on the ground: "), ("always", "is up")])
def test_a_call_that_a_person_is_asked_about_is_decided_where_it_is_asked(folder: Path, word: str, end: str) -> None:
    with terminal(folder, "chat", "--profile", "pilot") as term:
        term.becomes("> ")
        term.type("go\n")
        term.becomes('May this be done? launch {"rocket": "ariel"} Type y to approve, n to decline, always')
        term.type(f"{word}\n")
        term.becomes(end)
        eventually(lambda: term.shows("\r\n> ") and term.seen.endswith("\r\n> "), 30)  # between, Ctrl-D is not kept
        term.type("\x04")
        assert term.process.wait(30) == 0
    given = json.loads(roost(folder, "approvals", "permissions", "--json").stdout)
    assert len(given) == (word == "always")


def test_a_long_argument_is_folded_and_shown_whole_when_asked_for(folder: Path) -> None:
    (folder / "brains.py").write_text(BRAINS.replace('"ariel"', '"ariel " * 200 + "end"'))
    with terminal(folder, "chat", "--profile", "pilot") as term:
        term.becomes("> ")
        term.type("go\n")
        term.becomes("[1,205 characters in all]} Type y to approve, n to decline, always to allow")
        term.becomes(", a to see all of it.")
        term.type("a\n")
        term.becomes('ariel end"')
        term.type("y\n")
        term.becomes("end is up")


def test_what_is_typed_ahead_without_an_end_stays_at_the_next_prompt(folder: Path) -> None:
    with terminal(folder, "chat", "--profile", "listener") as person:
        person.becomes("> ")
        person.type("go\n")
        person.becomes("heard go ")
        person.type("hel")
        person.becomes("heard go hel")
        (folder / "gate").touch()
        person.becomes("to its end\r\n> ")
        person.type("lo\n")
        person.becomes("heard hello to its end")
    assert [content for content, _ in answers(folder)][2:] == ["hello", "heard hello to its end"]


def test_ctrl_d_during_an_answer_leaves_after_it(folder: Path) -> None:
    with terminal(folder, "chat", "--profile", "listener") as person:
        person.becomes("> ")
        person.type("go\n")
        person.becomes("heard go ")
        person.type("more\n\x04")
        person.becomes("heard more to its end\r\n")
        assert person.process.wait(15) == 0
    assert answers(folder)[-1] == ("heard more to its end", "complete")


def test_commands_begin_with_a_slash(folder: Path) -> None:
    roost(folder, "agents", "create", "d", "--profile", "echo")
    with terminal(folder, "chat", "--profile", "echo") as person:
        for typed, told in (
            ("one", "one\r\n> "),
            ("/help", "/new         start a new talk"),
            ("/stop", "No answer is being written."),
            ("/new", "Talking with "),
            ("two", "two\r\n> "),
            ("/agent", "Your agents: d"),
            ("/agent nobody", "there is no agent 'nobody'"),
            ("/agent d", "Talking with d."),
            ("three", "three\r\n> "),
            ("/hlep", "/hlep is not a command: did you mean /help? /help lists them, and //hlep sends it"),
            ("//help", "/help\r\n> "),
            ("/etc/hosts", "/etc/hosts\r\n> "),
        ):
            eventually(lambda: person.shows("> ") and person.seen.endswith("> "), 30)
            person.seen = ""
            person.type(f"{typed}\n")
            person.becomes(told)
        eventually(lambda: person.shows("> ") and person.seen.endswith("> "), 30)
        person.type("/exit\n")
        assert person.process.wait(30) == 0
    talks = json.loads(roost(folder, "talks", "ls", "--json").stdout)
    assert [(talk["title"], talk["messages"], bool(talk["agent"])) for talk in talks] == [
        ("three", 6, True),
        ("two", 2, False),
        ("one", 2, False),
    ]


@pytest.mark.parametrize(("word", "code"), [("/stop", None), ("/exit", 0)])
def test_commands_work_during_an_answer(folder: Path, word: str, code: int | None) -> None:
    with terminal(folder, "chat", "--profile", "endless") as person:
        person.becomes("> ")
        person.type("go\n")
        person.becomes("part1 ")
        for typed, told in (("/new", "/new works after the answer: /stop stops it"), ("/help", "/exit        leave")):
            person.type(f"{typed}\n")
            person.becomes(told)
        person.type(f"{word}\n")
        person.becomes("(stopped)")
        if code is None:
            person.becomes("(stopped)\r\n> ")
        else:
            assert person.process.wait(30) == code
    assert answers(folder)[-1] == ("part1 ", "interrupted")


def test_a_terminal_shows_markdown_and_the_same_text_is_plain_in_a_pipe(folder: Path) -> None:
    source = "# Birds\n\nThe **wren** says `tic`:\n\n- one\n- two\n\n```python\nx = 1\n```\n\n<b>end</b>"
    with terminal(folder, "chat", source, "--profile", "echo", term="xterm-256color") as person:
        assert person.process.wait(30) == 0
        person.becomes("end")
        shown = on_screen(person.seen)
    assert [line for line in shown if line] == [
        "                                     Birds",
        "The wren says tic:",
        " • one",
        " • two",
        " x = 1",
        "<b>end</b>",
    ]
    assert roost(folder, "chat", source, "--profile", "echo").stdout == source + "\n"


def test_a_talk_is_named_by_any_part_of_its_id_that_no_other_has(folder: Path) -> None:
    for text in ("one\n", "two\n"):
        roost(folder, "chat", "--profile", "echo", stdin=text)
    newest, oldest = (row["talkSessionId"] for row in json.loads(roost(folder, "talks", "ls", "--json").stdout))
    assert roost(folder, "chat", "--talk", newest[-6:], stdin="three\n").stdout == "three\n"
    assert "three" in roost(folder, "talks", "show", newest[-6:].upper()).stdout
    assert "1. user\none" in roost(folder, "talks", "show", oldest.removeprefix("talk_")).stdout
    for command in (["talks", "show", "talk_"], ["chat", "--talk", "talk_"]):
        unclear = roost(folder, *command, stdin="hi\n")
        assert (unclear.returncode, unclear.stdout) == (1, "")
        assert [row.split()[0] for row in unclear.stderr.splitlines()[1:]] == [newest, oldest]


def test_an_unknown_profile_is_reported_before_the_first_message(folder: Path) -> None:
    with terminal(folder, "chat", "--profile", "nobody") as person:
        person.becomes("no profile 'nobody': use one of broken, echo, endless, guide")
        assert person.process.wait(15) == 1
    refused = roost(folder, "chat", "--profile", "nobody", stdin="")
    assert refused.returncode == 1


def test_ctrl_d_leaves_and_looking_in_leaves_nothing_behind(folder: Path) -> None:
    with terminal(folder, "chat") as person:
        person.becomes("> ")
        person.type("\x04")
        assert person.process.wait(15) == 0
    assert "No talks." in roost(folder, "talks", "ls").stdout


def test_an_unknown_talk_or_profile_is_reported(folder: Path) -> None:
    for arguments in (["--talk", "talk_1"], ["--profile", "nobody"]):
        refused = roost(folder, "chat", *arguments, stdin="hi\n")
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb\x1b[0m", "ab"),
        ("a\x1b]8;;http://x\x07b", "ab"),
        ("\x1b]52;c;AAAA", ""),
        ("a\rb\r\nc", "ab\nc"),
        ("\x9b31m", "31m"),
        ("tab\tnewline\n", "tab\tnewline\n"),
        ("grüß 🐦", "grüß 🐦"),
        ("\x1b", ""),
        ("\x1b(B", ""),
    ],
)
def test_plain_text_stays_and_escapes_go(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_a_line_is_one_line() -> None:
    assert single_line("a\n b\x1b[2J\t c") == "a b c"
