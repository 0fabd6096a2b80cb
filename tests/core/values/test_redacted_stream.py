"""S5, T6: secrets that are known by their value are hidden in a text that comes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.values.secrets import HIDDEN, RedactedStream, Redactor, passwords_in

SECRETS = ("sk-planted-0123456789", "hunter-22", "ssssss-1")
REDACTOR = Redactor({}, SECRETS)
PIECES = st.lists(
    st.one_of(
        st.sampled_from(SECRETS),
        st.sampled_from([secret[:n] for secret in SECRETS for n in range(1, len(secret))]),
        st.text("sk-hunter 2", max_size=6),
    ),
    max_size=12,
).map("".join)


def passed(text: str, cuts: list[int], redactor: Redactor = REDACTOR) -> list[str]:
    stream, pieces, at = RedactedStream(redactor), [], 0
    for cut in [*sorted(cut for cut in cuts if cut <= len(text)), len(text)]:
        pieces.append(stream.feed(text[at:cut]))
        at = cut
    return [*pieces, stream.end()]


@given(PIECES, st.lists(st.integers(0, 100), max_size=20))
def test_no_secret_passes_however_it_is_cut(text: str, cuts: list[int]) -> None:
    shown = "".join(passed(text, cuts))
    assert shown == "".join(passed(text, []))
    for secret in SECRETS:
        assert secret not in shown
        assert text.count(secret) == 0 or HIDDEN in shown


@given(st.text("ab sk-hu", max_size=40), st.lists(st.integers(0, 40), max_size=20))
def test_what_has_no_secret_passes_unchanged(text: str, cuts: list[int]) -> None:
    assert "".join(passed(text, cuts, Redactor({}, ["sk-hunter-0"]))) == text


def test_words_are_not_held_back() -> None:
    stream = RedactedStream(REDACTOR)
    assert [stream.feed(piece) for piece in ("ask", " hun", "ting", " as")] == ["a", "sk ", "hunting", " a"]
    assert stream.flush() == "s"
    assert stream.feed("k-planted-0123456789.") == f"{HIDDEN}."
    assert [stream.feed("hunt"), stream.flush(), stream.feed("er-22")] == ["", "", HIDDEN]


def test_an_unfinished_secret_at_the_end_is_hidden_and_a_short_one_is_said() -> None:
    assert "".join(passed("it is sk-planted-01", [])) == f"it is {HIDDEN}"
    assert "".join(passed("we hunt", [])) == "we hunt"


def test_a_password_of_a_url_is_known_as_it_is_written_and_as_it_is_meant() -> None:
    assert passwords_in("postgresql://ann:p%40ssword@host/db") == ("p%40ssword", "p@ssword")
    assert passwords_in("sqlite:///file.db") == ()
    assert passwords_in("postgresql://[") == ()


@pytest.mark.parametrize(
    ("name", "value", "is_private", "is_secret"),
    [
        ("OPENAI_API_KEY", "planted", False, True),
        ("OPENAI_API_KEY_2", "planted-1", False, True),
        ("DB_PASS", "planted-1", False, True),
        ("SSH_AUTH_SOCK", "/run/user/1000/keyring", False, False),
        ("ANYTHING", "planted-1", False, False),
        ("ANYTHING", "planted-1", True, True),
        ("GOOGLE_GENAI_USE_VERTEXAI", "FALSE", True, False),
        ("GOOGLE_CLOUD_LOCATION", "us-central1", True, False),
    ],
)
def test_which_variables_are_secret(name: str, value: str, is_private: bool, is_secret: bool) -> None:
    redactor = Redactor()
    redactor.learn({name: value}, is_private=is_private)
    assert (redactor.clean_known(value) == HIDDEN) is is_secret
