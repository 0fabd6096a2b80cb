"""Design tokens of all pages: colours for light and dark, type sizes and radii."""

from __future__ import annotations

COLOURS = {
    "text": ("#1E2422", "#E6E9E7"),
    "quiet": ("#535B57", "#A9B1AD"),
    "background": ("#FFFFFF", "#16191A"),
    "surface": ("#F3F4F1", "#212627"),
    "raised": ("#E7E9E4", "#2C3233"),
    "own": ("#E3ECE9", "#24302E"),
    "code": ("#F6F7F4", "#1D2223"),
    "line": ("#D3D7D1", "#3B4344"),
    "accent": ("#1F6F64", "#277A6E"),
    "on-accent": ("#FFFFFF", "#FFFFFF"),
    "link": ("#17665B", "#7CCBBD"),
    "danger": ("#B3261E", "#FF9B93"),
    "danger-surface": ("#FBEAE8", "#3A2120"),
    "warning": ("#7A5200", "#E8BD5A"),
    "warning-surface": ("#FAF1DD", "#352C18"),
}
"""Colours in light and dark. Texts have a contrast of at least 4.5:1 on the surfaces that they are used on."""
SIZES = {
    "small": "0.875rem",
    "tiny": "0.78rem",
    "radius": "0.5rem",
    "radius-large": "0.9rem",
}
_STREAMLIT = {
    "primaryColor": "accent",
    "backgroundColor": "background",
    "secondaryBackgroundColor": "surface",
    "textColor": "text",
    "linkColor": "link",
    "borderColor": "line",
    "codeBackgroundColor": "code",
}


def css() -> str:
    """Return the tokens as custom properties, `--roost-text` and the like."""
    colours = [f"--roost-{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items()]
    sizes = [f"--roost-{name}: {value};" for name, value in SIZES.items()]
    return f":root {{ {' '.join(colours + sizes)} }}"


def theme() -> dict[str, str]:
    """Return the colours as options of Streamlit's themes."""
    return {
        f"theme.{name}.{option}": COLOURS[token][number]
        for number, name in enumerate(("light", "dark"))
        for option, token in _STREAMLIT.items()
    }
