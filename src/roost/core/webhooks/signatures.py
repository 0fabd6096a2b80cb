"""Signatures of webhooks: the scheme of Standard Webhooks, and that of GitHub for requests that arrive."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
"""Headers of Standard Webhooks."""
GITHUB_SIGNATURE, GITHUB_ID = "x-hub-signature-256", "x-github-delivery"
PREFIX = "whsec_"
TOLERANCE = 300.0
"""Seconds by which the time of a signature may differ from ours."""


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def headers(keys: Sequence[str], message_id: str, now: float, body: bytes) -> dict[str, str]:
    """Return the headers of a request, signed with each secret."""
    signed = " ".join(signature(key, message_id, str(int(now)), body) for key in keys)
    return {ID: message_id, TIMESTAMP: str(int(now)), SIGNATURE: signed}


def signature(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()


def verified(secret: str, given: Mapping[str, str], body: bytes, now: float) -> bool:
    """Return whether a request has a valid signature of either scheme. Names of headers are in lower case."""
    if SIGNATURE in given:
        return _is_standard(secret, given, body, now)
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return _equal(expected, given.get(GITHUB_SIGNATURE, ""))


def _is_standard(secret: str, given: Mapping[str, str], body: bytes, now: float) -> bool:
    message_id, timestamp = given.get(ID, ""), given.get(TIMESTAMP, "")
    if not message_id or not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 15:
        return False
    if abs(now - int(timestamp)) > TOLERANCE:
        return False
    expected = signature(secret, message_id, timestamp, body)
    return any(_equal(expected, one) for one in given[SIGNATURE].split(" ")[:16])


def _equal(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode(errors="replace"))


def _key(secret: str) -> bytes:
    """Return the key of a secret: the encoded bytes of one with our prefix, the text of any other."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        return secret.encode()
