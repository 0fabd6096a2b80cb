"""Signatures: as Standard Webhooks and GitHub define them."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from roost.core.webhooks import signatures

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""The secret, the message and the signature are the published example of the scheme."""
BODY = b'{"test": 2432232314}'
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
NOW = 1614265330.0


def test_the_published_example_is_verified_and_signed_alike() -> None:
    assert signatures.verified(SECRET, HEADERS, BODY, NOW)
    assert signatures.headers([SECRET], HEADERS["webhook-id"], NOW, BODY) == HEADERS


def test_several_secrets_give_several_signatures_and_any_of_them_is_accepted() -> None:
    other = signatures.new_secret()
    signed = signatures.headers([other, SECRET], "msg_1", NOW, BODY)
    assert signed["webhook-signature"].count("v1,") == 2
    assert signatures.verified(SECRET, signed, BODY, NOW)
    assert signatures.verified(other, signed, BODY, NOW)
    assert not signatures.verified(signatures.new_secret(), signed, BODY, NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "msg_other"},
        {"webhook-id": ""},
        {"webhook-timestamp": "1614265331"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "9" * 400},
        {"webhook-timestamp": "\u0661"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        {"webhook-signature": "v1,\udcff"},
    ],
)
def test_anything_that_was_changed_is_refused(changed: dict[str, str]) -> None:
    assert not signatures.verified(SECRET, HEADERS | changed, BODY, NOW)


@pytest.mark.parametrize(("off", "accepted"), [(0, True), (-299, True), (299, True), (-301, False), (301, False)])
def test_a_signature_is_good_for_five_minutes(off: float, accepted: bool) -> None:
    assert signatures.verified(SECRET, HEADERS, BODY, NOW + off) is accepted


def test_a_signature_of_github_is_verified_with_the_text_of_the_secret() -> None:
    signed = {"x-hub-signature-256": "sha256=" + hmac.new(b"It's a Secret", b"Hello", hashlib.sha256).hexdigest()}
    assert signatures.verified("It's a Secret", signed, b"Hello", NOW)
    assert not signatures.verified("It's a Secret", signed, b"Hello!", NOW)
    assert not signatures.verified("It's a Secret", {}, b"Hello", NOW)
    standard = signed | {"webhook-signature": "v1,x"}
    assert not signatures.verified("It's a Secret", standard, b"Hello", NOW), "one wrong signature is enough"


def test_a_new_secret_has_32_random_bytes() -> None:
    one, two = signatures.new_secret(), signatures.new_secret()
    assert one != two
    assert len(base64.b64decode(one.removeprefix("whsec_"))) == 32
