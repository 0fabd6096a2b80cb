"""TLS: the certificate that this server shows, read again when it was renewed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from roost.errors import Invalid

log = logging.getLogger("roost.api.tls")

LOOK_AGAIN = 60.0
"""Seconds between two looks at the files of the certificate."""
_END = "-----END CERTIFICATE-----"
_START = "-----BEGIN CERTIFICATE-----"


class Certificate:
    """Certificate of this server, with its key and the context of its connections."""

    def __init__(self, file: Path, key: Path) -> None:
        self._file = file
        self._key = key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.set_alpn_protocols(["http/1.1"])
        self._seen = self._state()
        self._load(self.context)

    @property
    def pem(self) -> str:
        """Return the certificate itself, without those that vouch for it."""
        text = self._file.read_text(encoding="ascii", errors="replace")
        _, start, rest = text.partition(_START)
        return f"{start}{rest.partition(_END)[0]}{_END}\n"

    async def follow(self, renewed: Callable[[], None]) -> None:
        """Read the files again when they have changed, without end, and call `renewed`. Open connections stay."""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            if self.read_again():
                try:
                    await asyncio.to_thread(renewed)
                except Exception:  # such as a full disk: later renewals are followed all the same
                    log.exception("the renewed certificate could not be announced to the command line")

    def read_again(self) -> bool:
        """Use the files if they have changed; return whether they did. Broken ones are not used."""
        try:
            if (state := self._state()) == self._seen:
                return False
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # a failure would leave half of it in the other one
            self._load(self.context)
        except Invalid as error:
            log.warning("the renewed certificate is not used: %s", error)
            return False
        self._seen = state
        log.info("the certificate was read again", extra={"file": str(self._file)})
        return True

    def _state(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [file.stat() for file in (self._file, self._key)]
        except OSError as error:
            raise Invalid(f"the file {str(error.filename)!r} cannot be read: {error.strerror}") from error
        return tuple((one.st_mtime_ns, one.st_ino) for one in found)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._file, self._key, password=_refuse_password)
        except ssl.SSLError as error:
            raise Invalid(self._why(error)) from error
        except OSError as error:
            place = error.filename or self._key
            raise Invalid(f"the file {str(place)!r} cannot be read: {error.strerror}") from error

    def _why(self, error: ssl.SSLError) -> str:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"the key {str(self._key)!r} is not that of the certificate {str(self._file)!r}"
        if self._key == self._file:
            return f"the file {str(self._file)!r} does not hold a certificate and its key: name the key with --tls-key"
        return (
            f"the certificate {str(self._file)!r} or its key {str(self._key)!r} is not valid: both must be in PEM"
            " format, the key without a password"
        )


def _refuse_password() -> str:
    """Give no password: OpenSSL would ask for one on the terminal."""
    return ""
