"""`kill -9` of a real server during deliveries: every chosen fact arrives under one id, and no secret is in a log."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import signal
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.running import Up, up
from tests.conftest import eventually
from tests.outbound.receiver import Receiver, receiving

pytestmark = pytest.mark.journey

SETTINGS = 'default_profile = "parrot"\n[profiles.parrot]\nbrain = "birds:parrot"\n'
BRAIN = "async def parrot(turn):\n    yield turn.text\n"
KILLS, REQUESTS = 2, 30


class Journey:
    """A user who sends tasks through a hook, and hears of them through a webhook."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.folder, self.receiver = folder, receiver
        self.path = self.hook_secret = self.secret = self.webhook_id = ""
        self.accepted: dict[str, str] = {}
        self.output = ""

    def client(self, running: Up) -> httpx.Client:
        headers = {"Authorization": f"Bearer {json.loads(running.lock.read_text())['token']}"}
        url = f"http://localhost:{running.port}/api/v1"
        return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=30)

    def prepare(self, running: Up) -> None:
        with self.client(running) as client:
            client.post("/agents", json={"agentId": "d"}).raise_for_status()
            hook = client.post("/hooks", json={"agent": "d", "task": "Do"}).json()
            url, events = self.receiver.url, ["TaskSent", "TaskDone"]
            made = client.post("/webhooks", json={"url": url, "events": events}).json()
        self.path, self.hook_secret = hook["path"], hook["secret"]
        self.secret, self.webhook_id = made["secret"], made["webhook"]["webhookId"]

    def send(self, running: Up, prefix: str) -> None:
        """Send requests until the server is gone; note those that it has accepted."""
        for number in range(REQUESTS):
            name, body = f"{prefix}.{number}", f"work {prefix}.{number}".encode()
            value = "sha256=" + hmac.new(self.hook_secret.encode(), body, hashlib.sha256).hexdigest()
            headers = {"x-hub-signature-256": value, "x-github-delivery": name, "content-type": "text/plain"}
            try:
                url = f"http://localhost:{running.port}{self.path}"
                answer = httpx.post(url, content=body, headers=headers, trust_env=False, timeout=30)
            except httpx.TransportError:
                return
            if answer.status_code == 202:
                self.accepted[name] = answer.json()["id"]

    def tasks(self, running: Up) -> list[dict[str, Any]]:
        with self.client(running) as client:
            found: list[dict[str, Any]] = client.get("/tasks", params={"limit": 1000}).json()["items"]
            return found

    def is_over(self, running: Up) -> bool:
        with self.client(running) as client:
            listed = client.get(f"/webhooks/{self.webhook_id}/deliveries", params={"limit": 1000}).json()["items"]
        return all(task["status"] == "done" for task in self.tasks(running)) and all(
            one["state"] == "delivered" for one in listed
        )


def test_every_fact_arrives_over_kills_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(SETTINGS)
    (tmp_path / "birds.py").write_text(BRAIN)
    dice = random.Random(7)
    tasks: list[dict[str, Any]] = []
    with receiving() as receiver:
        journey = Journey(tmp_path, receiver)
        for number in range(KILLS + 1):
            with up(tmp_path, command="serve") as running:
                if not journey.path:
                    journey.prepare(running)
                sender = threading.Thread(target=journey.send, args=(running, str(number)))
                sender.start()
                seen, wanted = len(receiver.requests), dice.randrange(3, 20)
                if number < KILLS:
                    eventually(lambda seen=seen, wanted=wanted: len(receiver.requests) >= seen + wanted)  # type: ignore[misc]
                    assert running.end(signal.SIGKILL) == -signal.SIGKILL
                sender.join(60)
                if number == KILLS:
                    eventually(lambda: journey.is_over(running), 60)
                    tasks = journey.tasks(running)
                journey.output += running.output
    check(journey, tasks)


def check(journey: Journey, tasks: list[dict[str, Any]]) -> None:
    assert set(journey.accepted.values()) <= {task["taskId"] for task in tasks}, "nothing that was accepted is lost"
    assert len(set(journey.accepted.values())) == len(journey.accepted)
    assert len(tasks) >= REQUESTS
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    for headers, body in journey.receiver.requests:
        assert is_signed(journey.secret, headers, body)
        fact = json.loads(body)
        ids[fact["type"], fact["data"]["task_id"]].add(headers["webhook-id"])
    assert ids.keys() == {(name, task["taskId"]) for name in ("TaskSent", "TaskDone") for task in tasks}
    assert {len(found) for found in ids.values()} == {1}, "each fact has one id"
    assert len(set.union(*ids.values())) == len(ids), "and each id one fact"
    logs = journey.output + "".join(file.read_text(errors="replace") for file in journey.folder.rglob("*.log*"))
    for secret in (journey.path.rpartition("/")[2], journey.secret, journey.hook_secret, "s3cret"):
        assert secret not in logs


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Verify a signature as the public scheme says, without the code of Roost."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == f"v1,{expected}"
