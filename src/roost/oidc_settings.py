"""Settings of the identity provider: table `[oidc]`."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

EVERYONE = "*"
Text = Annotated[str, Field(min_length=1, max_length=500)]


class OidcSettings(BaseModel):
    """Table `[oidc]`: the provider at which users sign in, and those of its users who may."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer: Text
    client_id: Text
    client_secret: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{2,80}$")] | None = None
    """Name of the variable that holds the secret."""
    label: Text | None = None
    """Name of the provider on the sign-in page; by default its host name."""
    scopes: tuple[Text, ...] = ("openid", "profile", "email")
    audience: Text | None = None
    """Audience of access tokens for the API; by default none are accepted."""
    name_claim: Text = "preferred_username"
    allowed_domains: tuple[Text, ...] = ()
    allowed_emails: tuple[Text, ...] = ()
    admins: tuple[Text, ...] = ()
    """Email addresses of admins."""

    @field_validator("issuer")
    @classmethod
    def _url(cls, issuer: str) -> str:
        parts = urlsplit(issuer)
        if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
            raise ValueError("must be the URL of the provider, such as https://accounts.example.com")
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
            raise ValueError("must begin with https://")
        return issuer

    @model_validator(mode="after")
    def _some_allowed(self) -> OidcSettings:
        if not self.allowed_domains and not self.allowed_emails:
            told = 'must name who may sign in, as allowed_emails does too; ["*"] allows everyone who can sign in there'
            raise PydanticCustomError("limit", "{told}", {"key": "allowed_domains", "told": told})
        if self.audience == self.client_id:
            told = "must not be the client_id: ID tokens, which browsers have, would be accepted as access tokens"
            raise PydanticCustomError("limit", "{told}", {"key": "audience", "told": told})
        if "openid" not in self.scopes:
            raise PydanticCustomError("limit", "{told}", {"key": "scopes", "told": 'must contain "openid"'})
        return self

    @property
    def shown(self) -> str:
        return self.label or urlsplit(self.issuer).hostname or self.issuer

    def allows(self, email: str | None) -> bool:
        """Return whether somebody may sign in. `email`: None if the provider has not verified it."""
        if EVERYONE in self.allowed_domains:
            return True
        if email is None:
            return False
        domain = email.rpartition("@")[2]
        return is_in(email, self.allowed_emails) or is_in(domain, self.allowed_domains)


def is_in(text: str, among: tuple[str, ...]) -> bool:
    return text.casefold() in {one.casefold() for one in among}


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
