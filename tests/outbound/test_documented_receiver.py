"""The receiver in the guide receives facts of a real Roost, and refuses what is not signed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import httpx

from tests.cli.running import free_port
from tests.conftest import ENVIRONMENT, Open, eventually
from tests.test_docs import DOCS


def program(port: int) -> str:
    blocks = (DOCS / "guides" / "webhooks.md").read_text().split("```python\n")
    [code] = [block.partition("```")[0] for block in blocks if "def serve(port)" in block]
    return f"{code}\nserve({port})\n"


def test_the_receiver_of_the_guide_prints_facts_once_and_refuses_others(service: Open, tmp_path: Path) -> None:
    roost, port = service(), free_port()
    made = roost.webhooks.create("ann", f"http://127.0.0.1:{port}/", events=["AgentCreated"])
    environment = {**ENVIRONMENT, "WEBHOOK_SECRET": made.secret}
    child = subprocess.Popen(
        [sys.executable, "-c", program(port)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    told: list[str] = []
    assert child.stdout is not None
    reader = threading.Thread(target=told.extend, args=(child.stdout,))
    reader.start()
    try:
        eventually(lambda: roost.webhooks.test("ann", made.webhook.webhook_id).status == 204)
        roost.agents.create("ann", "d")
        eventually(lambda: roost.webhooks.deliveries("ann", made.webhook.webhook_id)[0].event == "AgentCreated")
        eventually(lambda: roost.webhooks.deliveries("ann", made.webhook.webhook_id)[0].status == 204)
        headers = {"webhook-id": "m", "webhook-timestamp": "1", "webhook-signature": "v1,x"}
        forged = httpx.post(f"http://127.0.0.1:{port}/", content=b"{}", headers=headers, trust_env=False)
        assert forged.status_code == 401
    finally:
        child.kill()
        child.wait()
        reader.join()
        child.stdout.close()
    assert told[0] == "Ping None\n"
    assert told[-1] == "AgentCreated ann/d\n"
