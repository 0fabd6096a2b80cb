"""A small identity provider on loopback: discovery, authorization code flow with PKCE, keys that rotate, and lies."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

CLIENT, SECRET = "roost", "secret-of-the-client, which is long enough"
SHARED = b"a key that the provider shares with somebody"
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Provider:
    """State of the provider, and the ways in which it lies."""

    def __init__(self) -> None:
        self.issuer = ""
        self.claims: dict[str, Any] = {"sub": "1", "email": "ann@example.com", "email_verified": True}
        self.lies: dict[str, Any] = {}
        """Claims of ID tokens that are not as they should be."""
        self.metadata: dict[str, Any] = {}
        """Further facts of the discovery document."""
        self.algorithm = "ES256"
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.answer_of_token: bytes | None = None
        self.rotate()

    def rotate(self, algorithm: str = "ES256") -> None:
        """Use a new key; the old one is not published any more."""
        self.algorithm, self.kid = algorithm, secrets.token_hex(4)
        self.key: Key = (
            ec.generate_private_key(ec.SECP256R1())
            if algorithm == "ES256"
            else rsa.generate_private_key(public_exponent=65537, key_size=2048)
        )

    def keys(self) -> dict[str, Any]:
        public = self.key.public_key()
        if isinstance(public, rsa.RSAPublicKey):
            shown = RSAAlgorithm.to_jwk(public, as_dict=True)
        else:
            shown = ECAlgorithm.to_jwk(public, as_dict=True)
        return {"keys": [{**shown, "kid": self.kid, "use": "sig"}, _shared()]}

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        } | self.metadata

    def token(self, audience: str = CLIENT, **claims: Any) -> str:
        now = int(time.time())
        facts = {"iss": self.issuer, "aud": audience, "iat": now, "exp": now + 300} | self.claims | claims
        return jwt.encode(facts, self.key, self.algorithm, {"kid": self.kid})

    def authorized(self, query: str) -> str:
        """Return where the browser goes after somebody has signed in."""
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert asked["response_type"] == "code"
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.issuer}
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def exchanged(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the tokens of a code, once, to the client that has begun with the challenge."""
        asked = self.codes.pop(form.get("code", ""), None)
        proof = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if (
            asked is None
            or base64.urlsafe_b64encode(proof).rstrip(b"=").decode() != asked["code_challenge"]
            or form.get("redirect_uri") != asked["redirect_uri"]
            or authorization != f"Basic {expected}"
        ):
            return None
        return {"id_token": self.token(**({"nonce": asked["nonce"]} | self.lies)), "token_type": "Bearer"}


def _shared() -> dict[str, str]:
    return {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(SHARED).rstrip(b"=").decode()}


@contextmanager
def provider() -> Iterator[Provider]:
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            made.asked.append(parts.path)
            if parts.path == "/authorize":
                self.send_response(303)
                self.send_header("Location", made.authorized(parts.query))
                self.send_header("Content-Length", "0")
                return self.end_headers()
            shown = {"/keys": made.keys, "/.well-known/openid-configuration": made.discovery}[parts.path]
            return self._answer(200, json.dumps(shown()).encode())

        def do_POST(self) -> None:
            made.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            found = made.exchanged(form, self.headers.get("Authorization", ""))
            answer = made.answer_of_token or json.dumps(found).encode()
            self._answer(200 if found else 400, answer)

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
