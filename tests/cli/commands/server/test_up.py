"""`roost up`: everything in one process, which ends cleanly when it is asked to."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
import uvicorn
import websockets.sync.client
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.typing import Origin, Subprotocol

import roost as package
from roost.cli.commands.server.up import Server, reserve_shutdown_time
from roost.client import connect
from roost.stores.sqlite import owner
from tests.cli.running import Up, roost, up
from tests.conftest import eventually

BRAINS = """
import asyncio
async def endless(turn):
    yield "part1 "
    await asyncio.sleep(3600)
async def flood(turn):
    for _ in range(15):
        yield "x" * 1_000_000
    await asyncio.sleep(3600)
async def brief(turn):
    yield "part1 "
    await asyncio.sleep(1)
    yield "part2"
"""
NAMES = ("endless", "brief", "flood")
PROFILES = "".join(f"[profiles.{name}]\nbrain = 'brains:{name}'\n" for name in NAMES) + "[limits]\ndrain = 3"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "brains.py").write_text(BRAINS)
    (tmp_path / "roost.toml").write_text(PROFILES)
    return tmp_path


def nothing_listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_pages_and_api_and_ends_cleanly_at_a_signal(folder: Path, number: int) -> None:
    with up(folder) as running:
        page = httpx.get(f"http://localhost:{running.port}/", headers={"Accept": "text/html"}, trust_env=False)
        assert "<title>Streamlit</title>" in page.text
        assert any("roost_user" in name for name in page.cookies)
        for path in ("metrics", "metrics/", "agent/openapi.json"):
            assert httpx.get(f"http://localhost:{running.port}/_stcore/{path}", trust_env=False).status_code == 404
        assert running.lock.stat().st_mode & 0o777 == 0o600
        assert running.end(number) == 0
    assert "Stopping" in running.output
    assert running.output.endswith("Stopped.\n")
    assert not running.lock.exists()
    assert nothing_listens(running.port)


def test_an_answer_may_end_before_it_stops_and_is_watched_to_its_end(folder: Path) -> None:
    with up(folder, ROOST_LIMITS__DRAIN="10") as running:
        facts = owner(running.lock)
        with connect(facts["url"], facts["token"]) as service:
            talk = service.create_talk_session("ann", profile="brief")
            service.add_message("ann", talk, "go")
            stream = service.stream_messages("ann", talk)
            next(change for change in stream if change.message.content == "part1 ")
            running.process.send_signal(signal.SIGTERM)
            assert [change.message.content for change in stream][-1] == "part1 part2"
        assert running.process.wait(10) == 0


def test_an_answer_that_does_not_end_is_kept_and_the_process_ends_all_the_same(folder: Path) -> None:
    with up(folder) as running:
        facts = owner(running.lock)
        with connect(facts["url"], facts["token"]) as service:
            talk = service.create_talk_session("ann", profile="endless")
            service.add_message("ann", talk, "go")
            eventually(lambda: len(service.get_messages("ann", talk).messages) == 2)
        assert running.end(signal.SIGTERM) == 0
    shown = json.loads(roost(folder, "talks", "show", talk, "--json").stdout)
    assert [m["content"] for m in shown["messages"]][:2] == ["go", "part1 "]


def test_a_second_ctrl_c_leaves_at_once(folder: Path) -> None:
    with up(folder, ROOST_LIMITS__DRAIN="25") as running:
        facts = owner(running.lock)
        with connect(facts["url"], facts["token"]) as service:
            talk = service.create_talk_session("ann", profile="endless")
            service.add_message("ann", talk, "go")
            eventually(lambda: len(service.get_messages("ann", talk).messages) == 2)
        running.process.send_signal(signal.SIGINT)
        eventually(lambda: "Stopping" in running.output)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(5) == 130
    with up(folder):
        pass  # a lock file that a process left behind keeps nobody out


def test_a_streaming_reader_does_not_keep_it(folder: Path) -> None:
    with up(folder) as running:
        facts = owner(running.lock)
        with connect(facts["url"], facts["token"]) as service:
            talk = service.create_talk_session("ann", profile="brief")

            def follow() -> None:
                with suppress(package.Unavailable):  # it reconnects until the client is closed
                    list(service.stream_messages("ann", talk, follow=True))

            reader = threading.Thread(target=follow)
            reader.start()
            assert running.end(signal.SIGTERM) == 0
        reader.join(30)
        assert not reader.is_alive()


def silent_reader(running: Up, talk: str, token: str) -> socket.socket:
    """One who opens a stream and takes nothing of what comes."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", running.port))
    path = f"/api/v1/talks/{talk}/stream?follow=true"
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nRoost-User: ann\r\nAuthorization: Bearer {token}\r\n\r\n"
    reader.sendall(head.encode())
    return reader


def test_closing_takes_no_longer_than_its_limit_with_a_reader_connected(folder: Path) -> None:
    with up(folder) as running:
        facts = owner(running.lock)
        with connect(facts["url"], facts["token"]) as service:
            talk = service.create_talk_session("ann", profile="flood")
            service.add_message("ann", talk, "go")
            with silent_reader(running, talk, facts["token"]):
                # By then all that lies between the two is full.
                eventually(lambda: len(service.get_messages("ann", talk).messages[-1].content) > 12_000_000, 30)
                before = time.monotonic()
                assert running.end(signal.SIGTERM) == 0
                taken = time.monotonic() - before
    assert taken < 3 + 10  # `drain`, and some seconds for a busy machine


def test_answers_get_what_the_rest_of_the_closing_leaves() -> None:
    assert reserve_shutdown_time(package.Limits(drain=5.0, stop_patience=0.6)).drain == pytest.approx(3.5)
    assert reserve_shutdown_time(package.Limits(drain=1.0, stop_patience=0.6)).drain == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("", True),
        ("default_profile = 'guide'", False),
        ("[profiles.mine]\nbrain = 'guide'", False),
    ],
)
def test_a_missing_model_is_reported_unless_the_user_opted_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, told: bool
) -> None:
    lines: list[str] = []
    monkeypatch.setattr("roost.cli.commands.server.up._say", lines.append)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path))
    (tmp_path / "roost.toml").write_text(settings)
    with package.open(f"sqlite:///{tmp_path}/a.db", config=tmp_path / "roost.toml") as service:
        Server(uvicorn.Config("", log_config=None), service, 1.0).load_brains()
    assert ["No model is configured: the guide, a small script, answers" in line for line in lines] == [True] * told


def test_the_link_signs_in_once_and_another_can_be_had(folder: Path) -> None:
    with up(folder) as running:
        links = [running.link(), roost(folder, "link").stdout.strip()]
        assert links[0] != links[1]
        for link in links:
            with httpx.Client(trust_env=False) as browser:
                assert browser.get(link).status_code == 303
                talks = browser.get(f"http://localhost:{running.port}/api/v1/talks").json()
                assert talks == {"items": [], "next": None}
            assert httpx.get(link, trust_env=False).status_code == 403
        assert links[0].partition("code=")[2] not in (folder / "data" / "roost.log").read_text()


def test_a_websocket_of_another_site_is_refused(folder: Path) -> None:
    with up(folder) as running:
        here = f"localhost:{running.port}"
        assert _upgraded(running.port, f"http://{here}", here) == 101
        assert _upgraded(running.port, "http://evil.example", here) == 403
        assert _upgraded(running.port, "http://localhost:1", here) == 403
        assert _upgraded(running.port, "http://evil.example", "evil.example") == 403


def _upgraded(port: int, origin: str, host: str) -> int:
    """The status that the page's websocket is answered with."""
    with closing(HTTPConnection("localhost", port, timeout=10)) as connection:
        connection.request(
            "GET",
            "/_stcore/stream",
            headers={
                "Host": host,
                "Origin": origin,
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            },
        )
        return connection.getresponse().status


def test_a_port_in_use_is_reported_with_its_owner(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = roost(folder, "up", "--port", str(port))
    assert refused.returncode == 1
    assert f"port {port} is in use by process {os.getpid()}" in refused.stderr
    assert f"--port {port + 1}" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_second_server_names_the_address_of_the_first(folder: Path) -> None:
    with up(folder) as running:
        for port in (running.port, 0):
            for program in ("up", "ui"):
                refused = roost(folder, program, "--port", str(port))
                assert (refused.returncode, refused.stdout) == (1, "")
                assert (
                    f"is already running on this store at http://localhost:{running.port}. `roost link`"
                    in refused.stderr
                )
                assert len(refused.stderr.splitlines()) == 1


def test_a_port_of_a_roost_with_another_store_is_reported(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with up(folder) as running:
        refused = roost(tmp_path_factory.mktemp("other"), "up", "--port", str(running.port))
    assert refused.returncode == 1
    assert f"in use by another Roost (http://localhost:{running.port})" in refused.stderr
    assert f"--port {running.port + 1}" in refused.stderr


def test_pages_alone_on_a_store_that_a_script_has_are_refused_at_once(folder: Path) -> None:
    (folder / "data").mkdir()
    with package.open(f"sqlite:///{folder}/data/roost.db"):
        refused = roost(folder, "ui", "--port", "0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"in use by process {os.getpid()}" in refused.stderr


def test_it_listens_on_this_machine_only(folder: Path) -> None:
    for program, told in (("up", "without TLS"), ("ui", "this command serves this machine only. Use `roost up`")):
        refused = roost(folder, program, "--port", "0", ROOST_HOST="0.0.0.0")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"cannot listen on '0.0.0.0'{'' if program == 'up' else ': '}" in refused.stderr
        assert told in refused.stderr


def test_its_log_is_json_without_secrets(folder: Path) -> None:
    with up(folder, ROOST_SECRET="correct horse battery staple", SOME_API_KEY="sk-1234567890") as running:
        running.end(signal.SIGTERM)
    text = (folder / "data" / "roost.log").read_text()
    assert all({"time", "level", "logger", "message"} <= set(json.loads(line)) for line in text.splitlines())
    assert "battery" not in text
    assert not (folder / "data" / "secret").exists()


def test_reload_takes_up_a_changed_brain_at_its_next_answer(folder: Path) -> None:
    brain = "async def changing(turn):\n    yield {answer!r}\n"
    (folder / "changing.py").write_text(brain.format(answer="old"))
    (folder / "roost.toml").write_text("[profiles.changing]\nbrain = 'changing:changing'")
    with up(folder, "--reload"):
        assert roost(folder, "chat", stdin="hi\n").stdout == "old\n"
        (folder / "changing.py").write_text(brain.format(answer="a new one"))
        assert roost(folder, "chat", stdin="hi\n").stdout == "a new one\n"


def open_page(running: Up, browser: httpx.Client) -> str:
    """Open the page as a browser does, with the browser's cookies; what comes until the script has ended."""
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    address, origin = f"ws://localhost:{running.port}/_stcore/stream", f"http://localhost:{running.port}"
    shown = b""
    with websockets.sync.client.connect(
        address,
        origin=Origin(origin),
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": cookies},
        proxy=None,
    ) as socket:
        socket.send(BackMsg(rerun_script=ClientState()).SerializeToString())
        while True:
            data = socket.recv(timeout=20)
            assert isinstance(data, bytes)
            shown += data
            if ForwardMsg.FromString(data).HasField("script_finished"):
                return shown.decode(errors="replace")


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(("command", "ready"), [("up", "Stop with"), ("ui", "Sign in with")])
def test_the_page_knows_its_user_by_the_cookie_and_the_end_is_clean(folder: Path, command: str, ready: str) -> None:
    with up(folder, command=command, ready=ready) as running:
        eventually(lambda: not nothing_listens(running.port))
        with httpx.Client(headers={"Accept": "text/html"}, trust_env=False) as nobody:
            assert "not signed in" in open_page(running, nobody)
        with httpx.Client(headers={"Accept": "text/html"}, trust_env=False) as browser:
            browser.get(running.link())
            assert "not signed in" not in open_page(running, browser)
        assert running.lock.exists()
        assert running.end(signal.SIGTERM) == 0, running.output
    assert not running.lock.exists()


def addresses(port: int) -> set[str]:
    """Return the addresses on which something listens on that port, as the kernel writes them."""
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [row.split() for table in tables for row in table]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}


def test_the_pages_alone_have_the_same_door(folder: Path) -> None:
    with up(folder, command="ui", ready="Sign in with") as running:
        eventually(lambda: not nothing_listens(running.port))
        address = f"http://localhost:{running.port}"
        with httpx.Client(base_url=address, headers={"Accept": "text/html"}, trust_env=False) as browser:
            assert "content-security-policy" in browser.get("/").headers
            assert any("roost_user" in name for name in browser.cookies)
            assert browser.get("/", headers={"Host": "evil.example"}).status_code == 421
            assert browser.get("/_stcore/metrics").status_code == 404
            assert addresses(running.port) == {"0100007F"}
            assert browser.get(running.link()).status_code == 303
        refused = roost(folder, "link")
        assert refused.returncode == 1
        assert "`roost ui` prints its own" in refused.stderr
        running.end(signal.SIGTERM)
    assert nothing_listens(running.port)
