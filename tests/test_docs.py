"""The docs are true: their samples run and print what they say, their links lead somewhere, nothing is left out."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roost
from roost.cli.main import app
from roost.core.failures.faults import Fault, sentence
from roost.core.monitoring.facts import Name
from roost.core.talks.talk import BusyPolicy
from tests.conftest import Open, eventually
from tests.journeys.test_workers import crash

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests/faults/README.md",
    *sorted(DOCS.rglob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
END_OF_BLOCK = "\x1e"


@dataclass(frozen=True)
class Block:
    page: Path
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{named(self.page)} {self.text.splitlines()[0]}"


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[Block]:
    found = [Block(page, language, text) for language, text in FENCE.findall(page.read_text())]
    return [block for block in found if not languages or block.language in languages]


def all_blocks(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page, *languages)]


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
    return {**kept, "PYTHONPATH": path, "ROOST_DATA": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_python_samples_run_and_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    """A `text` block right after a sample is what it prints."""
    printed = run_samples(page, tmp_path)
    assert len(printed) == len(blocks(page, "python")) + 1
    for number, expected in expected_outputs(page):
        assert printed[number] == expected


def test_the_samples_of_the_readme_run_again_where_they_have_run(tmp_path: Path) -> None:
    *_, first, _ = run_samples(ROOT / "README.md", tmp_path)
    *_, again, _ = run_samples(ROOT / "README.md", tmp_path)
    assert (first, again) == ("done 1\n", "done 2\n")


def run_samples(page: Path, folder: Path) -> list[str]:
    """Return what each sample of a page prints: all of them in one program, in order."""
    samples = [block.text for block in blocks(page, "python")]
    program = f"\nprint({END_OF_BLOCK!r})\n".join([*samples, ""])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split(f"{END_OF_BLOCK}\n")


def expected_outputs(page: Path) -> Iterator[tuple[int, str]]:
    number = -1
    after_python = False
    for block in blocks(page):
        if block.language == "text" and after_python:
            yield number, block.text
        after_python = block.language == "python"
        number += after_python


@pytest.mark.parametrize("block", all_blocks("toml"), ids=lambda block: str(block.name))
def test_settings_in_the_docs_are_valid(block: Block, tmp_path: Path) -> None:
    from roost.settings import Settings, load

    file = tmp_path / "roost.toml"
    file.write_text(block.text)
    assert load(file, environ={}).model_dump() != Settings().model_dump()


def test_every_setting_is_documented() -> None:
    from roost.settings import ProfileSettings, Settings

    page = (DOCS / "guides" / "configure.md").read_text()
    tables = {
        "profiles": "[profiles.NAME]",
        "mcp": "[mcp.NAME]",
        "limits": "[limits]",
        "oidc": "[oidc]",
        "cluster": "[cluster]",
    }
    missing = [name for name in Settings.model_fields if f"| `{tables.get(name, name)}` |" not in page]
    missing += [name for name in ProfileSettings.model_fields if f"`{name}`" not in page]
    assert missing == []


def test_the_mistake_in_the_docs_is_reported_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roost.settings import load

    monkeypatch.chdir(tmp_path)
    Path("roost.toml").write_text('host = "127.0.0.1"\n\nprot = 8501\n')
    [told] = blocks(DOCS / "guides" / "configure.md", "text")
    with pytest.raises(roost.Invalid) as refused:
        load("roost.toml", environ={})
    assert str(refused.value) == told.text.strip()


@pytest.mark.parametrize("block", all_blocks("json"), ids=lambda block: str(block.name))
def test_json_in_the_docs_is_json(block: Block) -> None:
    assert json.loads(block.text)


def test_the_change_in_the_docs_is_what_a_stream_sends() -> None:
    from roost.protocol.talks import ChangeEvent

    shown = json.loads(blocks(DOCS / "reference" / "http.md", "json")[0].text)
    assert json.loads(ChangeEvent.model_validate(shown).model_dump_json()) == shown


@pytest.mark.parametrize("block", all_blocks("sh"), ids=lambda block: str(block.name))
def test_commands_in_the_docs_exist(block: Block) -> None:
    for line in block.text.splitlines():
        program, *arguments = shlex.split(line, comments=True) or ["#"]
        match program.removeprefix(".venv/bin/"):
            case "roost":
                check_roost(arguments)
            case "make":
                target = next(word for word in arguments if "=" not in word)
                assert re.search(rf"^{target}:.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
            case "pip" | "uvx" | "docker":  # tests/test_install.py installs the wheel, and reads the Containerfile
                assert "roost" in arguments[-1] or "roost up" in line
            case "#":
                continue
            case other:
                pytest.fail(f"nobody checks the command {other!r}")


def check_roost(arguments: list[str]) -> None:
    words = [word for word in arguments if not word.startswith("-")]
    told = helped()
    for count in range(1, len(words) + 1):
        if count > 1 and "Commands" not in told:
            break
        told = helped(*words[:count])
    missing = [word for word in arguments if word.startswith("--") and word not in told]
    assert missing == []


@lru_cache
def helped(*command: str) -> str:
    """Return what `roost COMMAND --help` prints."""
    result = CliRunner().invoke(app, [*command, "--help"], env=environment(ROOT / "nowhere"))
    assert result.exit_code == 0, result.output
    return result.output


# --- sentences ------------------------------------------------------------------------------------


def quoted(heading: str) -> list[str]:
    """The sentences of the program that stand under a heading of the troubleshooting page."""
    page = (DOCS / "troubleshooting.md").read_text()
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    quotes = re.findall(r"(?:^> .*\n)+", section, re.MULTILINE)
    return [" ".join(line.removeprefix("> ") for line in quote.splitlines()) for quote in quotes]


def test_what_is_said_about_brains_that_are_not_found_is_the_programs() -> None:
    said = [sentence(fault, "run_01").split(" (reference")[0] for fault in (Fault.BRAIN, Fault.PROFILE)]
    assert quoted("A brain is not found") == said


def tells(roosted: roost.AgentService, words: str) -> bool:
    return words in (roosted.health().problem or "")


def test_what_is_said_about_workers_that_are_down_is_the_programs(service: Open) -> None:
    roosted = service(limits=roost.Limits(drain=0.5, stop_patience=0.3, crashes=1))
    crash(roosted)  # the one that is allowed
    eventually(lambda: (roosted.health().restarts, roosted.health().workers) == (1, 2), 60)
    problems = []
    for told in ("1 of 2", "2 of 2"):
        crash(roosted)
        eventually(partial(tells, roosted, told), 60)
        problems.append(roosted.health().problem or "")
    assert quoted("The workers are down") == problems[1:]
    page = (DOCS / "troubleshooting.md").read_text()
    [while_some_are_left] = re.findall(r"it says \*(.*)\* instead", page)
    assert while_some_are_left in problems[0]


def test_log_lines_on_the_troubleshooting_page_are_in_the_source() -> None:
    page = (DOCS / "troubleshooting.md").read_text()
    lines = re.findall(r"(?:Look for|they|agents are)\s`([^`]+)`", page)
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert len(lines) == 5
    assert [line for line in lines if line not in source] == []


# --- links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    broken = [link for link in LINK.findall(prose) if "://" not in link and not leads_somewhere(page, link)]
    assert broken == []


def leads_somewhere(page: Path, link: str) -> bool:
    target, _, anchor = link.partition("#")
    file = (page.parent / target).resolve() if target else page
    return file.exists() and (not anchor or anchor in anchors(file))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, unread = set[Path](), [ROOT / "README.md"]
    while unread:
        page = unread.pop()
        if page.suffix == ".md" and page not in seen and page.exists():
            seen.add(page)
            links = LINK.findall(page.read_text())
            unread += [(page.parent / link.partition("#")[0]).resolve() for link in links if "://" not in link]
    assert sorted(named(page) for page in PAGES if page not in seen) == []


# --- nothing is left out --------------------------------------------------------------------------


def test_every_method_of_the_service_is_documented() -> None:
    page = (DOCS / "reference" / "service.md").read_text()
    methods = [name for name, _ in inspect.getmembers(roost.AgentService, inspect.isfunction) if name[0] != "_"]
    assert [name for name in methods if f"| `{name}(" not in page] == []


def test_the_documented_arguments_are_those_of_the_methods() -> None:
    page = (DOCS / "reference" / "service.md").read_text()
    for name, given in re.findall(r"^\| `(\w+)\(([^)]*)\)`", page, re.MULTILINE):
        documented = [argument.split("=")[0] for argument in given.split(", ") if argument]
        real = list(inspect.signature(getattr(roost.AgentService, name)).parameters)[1:]
        short = [{"user_id": "user", "talk_session_id": "talk"}.get(argument, argument) for argument in real]
        assert documented == [argument for argument in short if argument != "agent"], name


@pytest.mark.parametrize(
    "kind",
    [
        roost.Message,
        roost.Page,
        roost.Change,
        roost.Talk,
        roost.Receipt,
        roost.Hit,
        roost.SearchPage,
        roost.TranscriptPart,
    ],
)
def test_every_field_of_what_the_service_gives_is_documented(kind: type) -> None:
    page = (DOCS / "reference" / "service.md").read_text()
    [row] = re.findall(rf"^\| `{kind.__name__}` \| (.*) \|$", page, re.MULTILINE)
    assert [field.name for field in fields(kind) if f"`{field.name}`" not in row] == []


def test_every_limit_is_documented_with_its_default() -> None:
    page = (DOCS / "reference" / "limits.md").read_text()
    documented = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", page, re.MULTILINE))
    assert documented == {field.name: str(field.default) for field in fields(roost.Limits)}


def test_every_error_every_kind_of_failure_and_every_busy_policy_is_documented() -> None:
    errors = (DOCS / "reference" / "errors.md").read_text()
    public = [name for name, value in vars(roost).items() if isinstance(value, type) and issubclass(value, Exception)]
    assert [name for name in public if f"`{name}`" not in errors and f"`roost.{name}`" not in errors] == []
    assert [fault for fault in Fault if f"| `{fault}` |" not in errors] == []
    policies = (DOCS / "guides" / "talk-from-python.md").read_text()
    assert [policy for policy in BusyPolicy if f"| `{policy}`" not in policies] == []


def test_every_table_of_the_store_is_documented() -> None:
    from roost.stores import migrations

    steps = "\n".join(migrations.steps())
    renamed = set(re.findall(r"^ALTER TABLE (\w+) RENAME TO", steps, re.MULTILINE))
    made = set(re.findall(r"^CREATE TABLE (\w+)", steps, re.MULTILINE)) - renamed
    page = (DOCS / "concepts" / "store.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == made


def test_every_fact_and_every_number_of_the_monitor_is_documented(service: Open) -> None:
    page = (DOCS / "concepts" / "monitor.md").read_text()
    told = [*Name, *service({}).monitor.metrics()]
    assert [name for name in told if f"`{name}`" not in page] == []


def test_everything_a_turn_has_is_documented() -> None:
    page = (DOCS / "guides" / "write-a-brain.md").read_text()
    has = {*dir(roost.Turn), *(field.name for field in fields(roost.Turn))}
    assert [name for name in sorted(has) if not name.startswith("_") and f"`turn.{name}" not in page] == []


def test_every_decision_is_listed_by_its_number() -> None:
    listed = re.findall(
        r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (DOCS / "decisions" / "README.md").read_text(), re.MULTILINE
    )
    files = sorted(file.name for file in (DOCS / "decisions").glob("0*.md"))
    assert [file for _, _, file in listed] == files
    for number, title, file in listed:
        assert file.startswith(number)
        assert (DOCS / "decisions" / file).read_text().startswith(f"# {number} {title}\n")


def test_every_command_is_documented() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text()
    listed = helped().split("Commands", 1)[1]
    commands = re.findall(r"^\W{0,4}([a-z][a-z-]*)\s{2,}", listed, re.MULTILINE)
    assert "up" in commands
    assert [command for command in commands if f"`roost {command}" not in page] == []


def test_every_route_is_documented(tmp_path: Path) -> None:
    app = pytest.importorskip("roost.api.app")
    from roost.api.auth import Identity
    from roost.settings import Settings

    page = (DOCS / "reference" / "http.md").read_text()
    with roost.open(f"sqlite:///{tmp_path / 'roost.db'}") as service:
        served = app.create_app(service, Settings(), Identity(b"0" * 32, "ann"), pages=False)
    routes = {f"{method.upper()} {path}" for path, ways in served.openapi()["paths"].items() for method in ways}
    documented = set(re.findall(r"^\| `([A-Z]+ /\S+)`", page, re.MULTILINE))
    assert documented == routes


def test_the_arguments_of_each_route_are_documented() -> None:
    from pydantic.alias_generators import to_camel

    from roost.protocol.namespaces import methods
    from roost.sync import NAMESPACES

    page = (DOCS / "reference" / "http.md").read_text()
    for method in [method for name, kind in NAMESPACES.items() for method in methods(name, kind)]:
        request = re.escape(f"{method.route.verb} /api/v1/{method.path}")
        [row] = re.findall(rf"^\| `{request}` \| (.*) \| .* \|$", page, re.MULTILINE)
        assert row == ", ".join(f"`{to_camel(name)}`" for name in method.takes.model_fields), method.path


def test_every_setting_of_an_agent_is_documented() -> None:
    page = (DOCS / "guides" / "agents.md").read_text()
    assert [field.name for field in fields(roost.AgentConfig) if f"| `{field.name}` |" not in page] == []
