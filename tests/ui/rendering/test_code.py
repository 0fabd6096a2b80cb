"""Code blocks: coloured, copied and reached by keyboard."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.ui.rendering.code import _LANGUAGES, LONGEST, code_block
from roost.ui.rendering.markdown import render
from tests.ui.rendering.html_reader import read

PYTHON = 'def f(x: int) -> str:  # why\n    return "a<b" * 10\n'


def test_a_code_block_has_its_language_a_copy_button_and_the_keyboard() -> None:
    html = render(f"```python title=x\n{PYTHON}```")
    assert '<button type="button" class="code-copy">Copy code</button>' in html
    assert '<pre tabindex="0" role="group" aria-label="Code, python" dir="ltr"><code class="language-python">' in html
    assert '<span class="tok-keyword">def</span>' in html
    assert '<span class="tok-comment"># why</span>' in html
    assert " style=" not in html
    assert read(html).text == PYTHON


@pytest.mark.parametrize("info", ["", "no-such-language", "../etc", "<b>", "thon py"])
def test_an_unknown_language_is_plain(info: str) -> None:
    html = render(f"```{info}\n{PYTHON}```")
    assert read(html).text == PYTHON
    assert "tok-" not in html


@pytest.mark.parametrize("language", sorted(_LANGUAGES))
@settings(max_examples=10, deadline=None)
@given(code=st.text(st.sampled_from("abc \n\t\"'<>/*#{}()[]$&;:=-+@\\é\r"), max_size=80))
def test_a_lexer_changes_no_character(language: str, code: str) -> None:
    code = code.replace("\r", "")
    assert read(code_block(language, code)).text == code


def test_long_code_is_coloured_at_its_start() -> None:
    html = code_block("python", PYTHON * 500)
    assert read(html).text == PYTHON * 500
    assert html.count("tok-comment") == LONGEST // len(PYTHON)


def test_lines_after_a_very_long_one_are_plain() -> None:
    html = code_block("python", f"x = 1\ny = '{'a' * 300}'\nz = 2\n")
    assert html.count("tok-number") == 1


@pytest.mark.parametrize("size", [100, 1_000, 5_000])
def test_most_of_an_open_block_is_coloured(size: int) -> None:
    code = (PYTHON * 200)[:size]
    html = code_block("python", code, is_open=True)
    assert read(html).text == code
    plain = html.rpartition("tok-")[2]
    assert len(plain) < 400 + size // 4
