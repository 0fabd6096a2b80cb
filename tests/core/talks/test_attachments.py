"""Attachments: the type follows from the bytes, names have no folders, pieces are the file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.talks import attachments
from roost.core.talks.attachments import PIECE, described, pack, pieces, unpack
from roost.errors import Invalid

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\1\0\1\0", "image/gif"),
        (b"GIF87a\1\0\1\0", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "application/octet-stream"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>', "text/plain"),
        (b"<html><script>", "text/plain"),
        ("Grüße 🐦".encode(), "text/plain"),
        ("Grüße".encode("latin-1"), "application/octet-stream"),
        ("hi".encode("utf-16"), "application/octet-stream"),
        (b"a\0b", "application/octet-stream"),
        (b"\x89PNG", "application/octet-stream"),
        (b"GIF8", "text/plain"),
        (b" \x89PNG\r\n\x1a\n", "application/octet-stream"),
    ],
)
def test_the_media_type_follows_from_the_bytes(data: bytes, kind: str) -> None:
    assert described("a1", "photo.png", data, most=100).media_type == kind


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("photo.png", "photo.png"),
        ("/etc/passwd", "passwd"),
        (r"C:\Users\ann\photo.png", "photo.png"),
        ("../../x", "x"),
        ("…/鳥 🐦.txt", "鳥 🐦.txt"),
    ],
)
def test_a_name_loses_its_folders(given: str, kept: str) -> None:
    assert attachments.file_name(given, "the name") == kept


@pytest.mark.parametrize(
    "name", ["", "a/", ".", "..", "a/..", "\\", " ", "a\nb", "a\0b", "x" * 201, "a\u202eb", 7, None]
)
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(Invalid, match="the name"):
        attachments.file_name(name, "the name")


@pytest.mark.parametrize(
    ("data", "told"), [(b"", "is empty"), (b"x" * 11, "10 are allowed"), ("text", "must be bytes")]
)
def test_a_file_that_is_empty_too_large_or_no_bytes_is_refused(data: Any, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        described("a1", "a.txt", data, most=10)


@pytest.mark.parametrize(
    ("ids", "told"),
    [("abc", "list of ids"), (5, "list of ids"), (["a", "a"], "twice"), (list("abc"), "send several"), ([1], "id")],
)
def test_ids_of_a_message_are_few_and_different(ids: Any, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        attachments.ids(ids, most=2)


@given(st.integers(0, 5), st.integers(-2, 2))
def test_the_pieces_of_any_size_are_the_file(count: int, more: int) -> None:
    data = bytes(index % 251 for index in range(max(0, count * PIECE // 64 + more)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attachments, "PIECE", PIECE // 64)
        found = list(pieces(data))
    assert b"".join(found) == data
    assert all(0 < len(piece) <= PIECE // 64 for piece in found)


def test_what_is_stored_with_a_message_is_read_again() -> None:
    found = (described("a1", '"🐦".txt', b"x", most=10), described("a2", "b.png", PNG, most=100))
    assert unpack(pack(found)) == found
    assert (pack(()), unpack("")) == ("", ())
