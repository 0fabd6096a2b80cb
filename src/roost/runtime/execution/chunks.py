"""Chunks: validation of what a brain yields."""

from __future__ import annotations

from roost.core.failures import tracebacks
from roost.core.talks.side_channels import Channel
from roost.errors import BrainFailed
from roost.ports import Chunk

_CHANNELS = frozenset(map(str, Channel))


def text_and_channel(chunk: object, stream: object) -> tuple[str, str]:
    """Return the text and the channel of a chunk. Raises BrainFailed with the line of the `yield` if it is invalid."""
    if isinstance(chunk, str):
        return str(chunk), Channel.FINAL
    if not isinstance(chunk, Chunk):
        raise _invalid(f"yielded {type(chunk).__name__}", stream)
    text: object = chunk.text
    if not isinstance(text, str):
        raise _invalid(f"yielded a Chunk whose text is {type(text).__name__}", stream)
    if chunk.channel not in _CHANNELS:
        known = ", ".join(sorted(_CHANNELS))
        raise _invalid(f"yielded a Chunk for the channel {chunk.channel!r:.80}, not for one of {known}", stream)
    return text, chunk.channel


def _invalid(problem: str, stream: object) -> BrainFailed:
    place = tracebacks.suspended_at(stream)
    where = "" if place is None else f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return BrainFailed(f"the brain {problem}{where}: yield str or roost.Chunk").with_traceback(place)
