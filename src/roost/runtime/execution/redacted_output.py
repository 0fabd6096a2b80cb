"""Output of a brain without secrets."""

from __future__ import annotations

from collections.abc import Iterator

from roost.core.values.secrets import RedactedStream, Redactor


class RedactedOutput:
    """Output by channel. Secrets known by value are redacted, even if a secret is split between chunks."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._streams: dict[str, RedactedStream] = {}

    def feed(self, text: str, channel: str) -> str:
        """Add a chunk; return the text that can be passed on."""
        stream = self._streams.get(channel)
        if stream is None:
            stream = self._streams[channel] = RedactedStream(self._redactor)
        return stream.feed(text)

    def flush(self, *, end: bool) -> Iterator[tuple[str, str]]:
        """Yield text that was held back as a possible start of a secret, with its channel; with `end`, all of it."""
        for channel, stream in self._streams.items():
            if text := stream.end() if end else stream.flush():
                yield text, channel
