"""The docs as pages of the server: every page is shown, and every link in them leads somewhere."""

from __future__ import annotations

import re

from roost import bundled_docs
from tests.api.serving import Served

LINK = re.compile(r'href="/docs/([^"#]*)(?:#([^"]*))?"')


def test_every_page_is_shown_and_every_link_between_pages_leads_to_a_section(served: Served) -> None:
    with served.browser("ann") as browser:
        shown = {doc.name: browser.get(f"/docs/{doc.name}") for doc in bundled_docs.pages()}
        assert len(shown) > 15
        assert {answer.status_code for answer in shown.values()} == {200}
        links = {link for answer in shown.values() for link in LINK.findall(answer.text)}
        assert len(links) > 50
        for page, anchor in sorted(links):
            assert page in shown or page == "api", page  # see test_rest
            assert not anchor or f'id="{anchor}"' in shown[page].text, (page, anchor)
        assert browser.get("/docs").text == shown["start"].text


def test_an_unknown_page_and_a_path_out_of_the_folder_are_not_found(served: Served) -> None:
    with served.browser("ann") as browser:
        for path in ("nothing", "../pyproject", "%2e%2e/%2e%2e/etc/passwd", "guides", "guides/agents.md", "x" * 3_000):
            assert browser.get(f"/docs/{path}").status_code == 404, path
