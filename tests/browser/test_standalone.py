"""The pages served by a plain `streamlit run`: a user for each browser, and a clear word when the store is taken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import START_LIMIT, free_port, wait_until_ready
from tests.browser.steps import expect_messages, messages, say, talk_titles
from tests.servers import ROOT

pytestmark = pytest.mark.browser


@contextmanager
def streamlit(folder: Path) -> Iterator[str]:
    port = free_port()
    options = ["--server.port", str(port), "--server.address", "localhost", "--server.headless", "true"]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "src/roost/api/pages/standalone.py"), *options]
    environment = os.environ | {"ROOST_DATA": str(folder), "PYTHONPATH": f"{ROOT / 'src'}"}
    output = folder / f"output-{port}"
    with output.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file)
        try:
            wait_until_ready(process, port, "/_stcore/health", output)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            process.wait(START_LIMIT)


def test_each_browser_has_its_own_user_and_finds_its_talk_again(browser: Browser, tmp_path: Path) -> None:
    with streamlit(tmp_path) as url:
        ann, bob = browser.new_context().new_page(), browser.new_context().new_page()
        ann.goto(url)
        say(ann, "hello")
        expect_messages(ann, "hello", "I am the guide")
        ann.reload()
        expect_messages(ann, "hello", "I am the guide")
        bob.goto(ann.url)
        expect(bob.get_by_text("This talk no longer exists")).to_be_visible()
        expect(talk_titles(bob)).to_have_count(0)
        with streamlit(tmp_path) as second:
            bob.goto(second)
            expect(bob.get_by_test_id("stAlert")).to_contain_text("is in use by process")
            expect(messages(bob)).to_have_count(0)
        ann.context.close()
        bob.context.close()
