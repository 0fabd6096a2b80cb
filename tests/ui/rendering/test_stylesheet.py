"""Code can be read in both themes, and each class that is written has a rule."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from roost.ui.rendering import code

CSS = (files("roost.ui.rendering") / "code.css").read_text()
LEAST_CONTRAST = 4.5


def colours(selector: str) -> dict[str, str]:
    body = CSS.split(f"{selector} {{", 1)[1].split("}", 1)[0]
    return dict(re.findall(r"--code-(\w+): (#[0-9a-f]{6})", body))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("selector", [".code, .answer", '[data-theme="dark"] :is(.code, .answer)'])
def test_words_of_code_have_enough_contrast(selector: str) -> None:
    theme = colours(selector)
    words = {name: colour for name, colour in theme.items() if name not in ("background", "border")}
    assert {
        name: colour for name, colour in words.items() if contrast(colour, theme["background"]) < LEAST_CONTRAST
    } == {}
    assert words.keys() >= set(code._CLASSES.values())


def test_every_kind_of_word_has_a_rule() -> None:
    assert set(re.findall(r"\.tok-(\w+) \{", CSS)) == set(code._CLASSES.values())
