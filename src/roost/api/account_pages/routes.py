"""Routes of the pages of accounts."""

from __future__ import annotations

from fastapi import FastAPI

from roost.api.account_pages.account import AccountPage
from roost.api.account_pages.context import AccountPages
from roost.api.account_pages.sign_in import SignInPages


def add(app: FastAPI, pages: AccountPages, url: str | None) -> None:
    """Add the pages. `url`: that of this server, if it is configured."""
    app.router.routes.extend([*SignInPages(pages).routes(), *AccountPage(pages).routes()])
    if pages.oidc is not None:
        from roost.api.account_pages.oidc import OidcPages

        app.router.routes.extend(OidcPages(pages, pages.oidc, url).routes())
