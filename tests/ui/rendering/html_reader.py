"""Reading of rendered HTML: the text that is shown, and proof that nothing else is in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

BLOCKS = {"blockquote", "hr", "li", "ol", "p", "pre", "table", "td", "th", "tr", "ul", *(f"h{n}" for n in range(1, 7))}
"""Elements that begin on a line of their own in a browser, whatever white space the HTML has."""
VOID = {"br", "hr", "input"}
MATHML = """math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt mstyle
msub msubsup msup mtable mtd mtext mtr munder munderover"""
MATHML_ATTRIBUTES = """accent accentunder columnalign columnlines columnspacing depth display displaystyle fence form
height largeop linethickness lspace mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace
scriptlevel separator stretchy symmetric voffset width"""
DIRECTED = {"dir": "auto"}
SCROLLING = {"tabindex": "0", "role": "group", "aria-label": r"Table|Formula|Code(, [\w+#.-]{1,30})?"}
ALLOWED: dict[str, dict[str, str]] = {
    "a": {
        "href": r"(?i:https?://|mailto:)\S+",
        "title": r"(?s).*",
        "rel": "noopener noreferrer nofollow",
        "target": "_blank",
    },
    "bdi": {"class": "control", "data-control": r"U\+20[0-9A-F]{2}"},
    "blockquote": DIRECTED,
    "br": {},
    "button": {"type": "button", "class": "code-copy"},
    "code": {"dir": "auto", "class": r"language-[\w+#.-]{1,30}"},
    "div": {"class": "code|code-head|table", **SCROLLING},
    "em": {},
    "hr": {},
    "input": {"type": "checkbox", "disabled": "", "checked": "", "aria-label": "Done|Not done"},
    "li": {**DIRECTED, "class": "task"},
    "ol": {**DIRECTED, "start": r"\d{1,9}"},
    "p": {**DIRECTED, "class": "plain"},
    "pre": {**SCROLLING, "dir": "ltr"},
    "s": {},
    "span": {
        "class": "code-language|math math-(inline|block)|no-link|tok-[a-z]+",
        "title": "(?s).*",
        "data-source": "(?s).*",
        **SCROLLING,
    },
    "strong": {},
    "table": DIRECTED,
    "tbody": {},
    "td": {**DIRECTED, "class": "align-(left|center|right)"},
    "th": {**DIRECTED, "class": "align-(left|center|right)"},
    "thead": {},
    "tr": {},
    "ul": DIRECTED,
    **{f"h{level}": DIRECTED for level in range(1, 7)},
    **{tag: dict.fromkeys(MATHML_ATTRIBUTES.split(), r"[\w .+-]*") for tag in MATHML.split()},
}
"""Each tag that may appear, with its attributes and a pattern for their values."""


class HtmlReader(HTMLParser):
    """Collects the shown text, and refuses tags and attributes that are not allowed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.breaks: list[int] = [0]
        """Places in the text at which a block begins."""
        self.tags: list[str] = []
        self._open: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.breaks += [len(self.text)] * (tag in BLOCKS)
        assert tag in ALLOWED, f"<{tag}> is not allowed"
        values = {name: value or "" for name, value in attrs}
        assert len(values) == len(attrs)
        for name, value in values.items():
            assert name in ALLOWED[tag], f"{name} is not allowed in <{tag}>"
            assert re.fullmatch(ALLOWED[tag][name], value), f"{name}={value!r} is not allowed in <{tag}>"
        assert tag != "a" or {"href", "rel", "target"} <= values.keys()
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
            is_math = values.get("class", "").startswith("math ")
            if self._hidden or is_math or values.get("class") == "code-head":
                self._hidden += 1
            if is_math and self._hidden == 1:
                self.text += values["data-source"]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes another tag"
        self._hidden -= bool(self._hidden)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"comment {data!r}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"declaration {decl!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"processing instruction {data!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"declaration {data!r}")

    def close(self) -> None:
        super().close()
        assert self._open == [], f"not closed: {self._open}"


def read(html: str) -> HtmlReader:
    """Check the HTML, and return what it shows."""
    reader = HtmlReader()
    reader.feed(html)
    reader.close()
    return reader


def words(html: str) -> list[str]:
    """Return the shown text without regard to white space."""
    found = read(html)
    lines = [found.text[start:end] for start, end in pairwise([*found.breaks, len(found.text)])]
    return "\n".join(lines).split()
