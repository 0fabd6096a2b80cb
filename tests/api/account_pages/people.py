"""People with accounts, and their browsers."""

from __future__ import annotations

import re

import httpx

from roost.core.accounts.users import Account
from roost.hosts.pending import drive
from tests.api.serving import Served

PASSWORD = "correct horse battery"
HTML = {"Accept": "text/html,application/xhtml+xml"}


def joined(served: Served, name: str, role: str = "user") -> Account:
    """An account with the password."""
    code = served.service.users.add("local", name, role=role).code
    return drive(served.service.asynchronous.users.redeem(code, PASSWORD, "127.0.0.1"))


def browser(served: Served, **headers: str) -> httpx.Client:
    """A browser that follows no redirect by itself."""
    return served.browser(None, **(HTML | headers))


def sign_in(client: httpx.Client, name: str, password: str = PASSWORD, path: str = "/") -> httpx.Response:
    return client.post("/sign-in", data={"name": name, "password": password, "next": path})


def error_in(page: httpx.Response) -> str:
    found = re.search(r'class="error"[^>]*>([^<]*)<', page.text)
    return found.group(1) if found else ""
