"""OpenID Connect: the provider with its keys, and the tokens that it signs."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any

import jwt

from roost.api.sign_in.oidc_http import checked_url, get_json, post_form
from roost.errors import Forbidden, Unavailable
from roost.oidc_settings import OidcSettings

log = logging.getLogger("roost.api.oidc")

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a key pair only: with a shared key, everybody who knows it could sign."""
METADATA_LIFE = 3600.0
FAILURE_LIFE = 2.0
"""Seconds for which a provider that did not answer is not asked again."""
KEYS_LIFE = 3600.0
KEYS_PAUSE = 10.0
"""Seconds between two reads of the keys, because of an unknown one or of a provider that is away."""
LEEWAY = 60
"""Seconds by which the clocks may differ."""
LONGEST_TOKEN = 16_000
MOST_KEYS = 50


@dataclass(frozen=True, slots=True)
class SignedInPerson:
    """Claims of the provider about a person. `email`: None if it was not verified."""

    subject: str
    email: str | None
    suggested_name: str


class OidcProvider:
    """The identity provider of the settings."""

    def __init__(self, settings: OidcSettings, secret: str | None = None) -> None:
        self.settings = settings
        self.issuer = settings.issuer
        self._secret = secret
        self._metadata: tuple[float, dict[str, Any]] = (-inf, {})
        self._keys: dict[str, jwt.PyJWK] = {}
        self._keys_read = self._keys_tried = -inf
        self._reading = asyncio.Lock()
        self._failed: tuple[float, Unavailable | None] = (-inf, None)

    async def authorization_url(self) -> str:
        return checked_url((await self._discovered()).get("authorization_endpoint"), "authorization endpoint")

    async def requires_issuer(self) -> bool:
        """Return whether the provider names itself when it sends a browser back."""
        return (await self._discovered()).get("authorization_response_iss_parameter_supported") is True

    async def sign_in(self, code: str, verifier: str, nonce: str, redirect: str) -> SignedInPerson:
        """Exchange a code for a verified ID token. Raise Forbidden if the person may not sign in."""
        endpoint = checked_url((await self._discovered()).get("token_endpoint"), "token endpoint")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self.settings.client_id,
            "code_verifier": verifier,
        }
        auth = (self.settings.client_id, self._secret) if self._secret else None
        answer = await post_form(endpoint, form, auth)
        claims = await self._verified(answer.get("id_token"), self.settings.client_id)
        if claims is None or not _same(claims.get("nonce"), nonce) or not self._is_for_us(claims):
            raise Forbidden("the answer of the identity provider is not valid: sign in again")
        return self._person(claims)

    async def subject_of(self, token: str) -> str | None:
        """Return the user of an access token for this API; None if it is not valid."""
        if self.settings.audience is None:
            return None
        claims = await self._verified(token, self.settings.audience)
        return str(claims["sub"]) if claims else None

    def _person(self, claims: Mapping[str, Any]) -> SignedInPerson:
        is_verified = claims.get("email_verified") in (True, "true")
        email = claims.get("email")
        known = email if is_verified and isinstance(email, str) and email.isprintable() and len(email) <= 320 else None
        if not self.settings.allows(known):
            raise Forbidden("this account of the identity provider may not sign in here: ask an admin")
        given = claims.get(self.settings.name_claim)
        name = given if isinstance(given, str) and given else (known or "").partition("@")[0]
        return SignedInPerson(str(claims["sub"]), known, name[:200])

    def _is_for_us(self, claims: Mapping[str, Any]) -> bool:
        """Return whether the token was made for this client, if it has several audiences."""
        several = isinstance(claims.get("aud"), list) and len(claims["aud"]) > 1
        party = claims.get("azp")
        return party == self.settings.client_id if several or party is not None else True

    # --- tokens -------------------------------------------------------------------------------------

    async def _verified(self, token: object, audience: str) -> dict[str, Any] | None:
        """Return the claims of a token that the provider has signed for this audience."""
        if not isinstance(token, str) or len(token) > LONGEST_TOKEN:
            return None
        try:
            head = jwt.get_unverified_header(token)
            if head.get("alg") not in ALGORITHMS:
                return None
            key = await self._key(head.get("kid"), str(head["alg"]))
            if key is None:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key=key.key,
                algorithms=[str(head["alg"])],
                audience=audience,
                issuer=self.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            log.info("a token of the identity provider was refused: %s", type(error).__name__)
            return None
        return claims

    async def _key(self, name: object, algorithm: str) -> jwt.PyJWK | None:
        """Return the key with this name; an unknown one may be new, so the keys are read again."""
        tried, now = self._keys_tried, monotonic()
        is_old = now - self._keys_read > KEYS_LIFE
        if (is_old or _chosen(self._keys, name, algorithm) is None) and now - tried > KEYS_PAUSE:
            async with self._reading:
                if self._keys_tried == tried:
                    await self._renew_keys()
        return _chosen(self._keys, name, algorithm)

    async def _renew_keys(self) -> None:
        """Read the keys. If that fails, those of before are used for a while."""
        try:
            self._keys = await self._read_keys()
            self._keys_read = monotonic()
        except Unavailable:
            if not self._keys:
                raise
            log.warning("the keys of the identity provider cannot be read; using those of before")
        self._keys_tried = monotonic()

    async def _read_keys(self) -> dict[str, jwt.PyJWK]:
        url = checked_url((await self._discovered()).get("jwks_uri"), "list of keys")
        listed = (await get_json(url)).get("keys")
        found: dict[str, jwt.PyJWK] = {}
        for number, one in enumerate(listed[:MOST_KEYS] if isinstance(listed, list) else ()):
            if isinstance(one, dict) and one.get("kty") in ("RSA", "EC", "OKP") and one.get("use", "sig") == "sig":
                try:
                    found[str(one.get("kid", f"#{number}"))] = jwt.PyJWK.from_dict(one)
                except (jwt.PyJWTError, ValueError, TypeError) as error:
                    log.info("a key of the identity provider cannot be used: %s", type(error).__name__)
        return found

    # --- discovery ----------------------------------------------------------------------------------

    async def _discovered(self) -> dict[str, Any]:
        read, found = self._metadata
        if monotonic() - read <= METADATA_LIFE:
            return found
        failed, error = self._failed
        if error is not None and monotonic() - failed < FAILURE_LIFE:
            raise error
        try:
            self._metadata = (monotonic(), await self._discover())
        except Unavailable as error:
            if not found:
                self._failed = (monotonic(), error)
                raise
            read = monotonic() - METADATA_LIFE + FAILURE_LIFE  # asked again after that time
            self._metadata = (read, found)  # better than nobody who can sign in
        return self._metadata[1]

    async def _discover(self) -> dict[str, Any]:
        found = await get_json(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != self.issuer:
            raise Unavailable("the identity provider calls itself by another name: correct oidc.issuer in the settings")
        return found


def _chosen(keys: Mapping[str, jwt.PyJWK], name: object, algorithm: str) -> jwt.PyJWK | None:
    """Return the key with this name; without a name the only one there is."""
    if name is None:
        found = next(iter(keys.values())) if len(keys) == 1 else None
    else:
        found = keys.get(str(name))
    return found if found is not None and _fits(found, algorithm) else None


def _fits(key: jwt.PyJWK, algorithm: str) -> bool:
    kinds = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
    return key.key_type == kinds[algorithm[:2]]


def _same(given: object, expected: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode(errors="replace"), expected.encode())
