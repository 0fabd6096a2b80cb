"""Tables in the terminal: columns are aligned and cut by the cells that a text takes."""

from __future__ import annotations

from rich.cells import cell_len

from roost.cli.render.tables import table, truncate

FAMILY = "👩‍👩‍👧"
ROWS = [("a1b2c3d4", "Vögel 🐦 日本語", "x" * 60), ("ffeeddcc", f"{FAMILY} ⚠️ é́", "\x1b[31mred\x1b[0m\nline")]


def test_columns_are_aligned_by_cells() -> None:
    lines = list(table(("ID", "TOPIC", "TEXT"), ROWS, width=120))
    starts = [cell_len(line[: line.index(word)]) for line, word in zip(lines, ("TEXT", "xxx", "red"), strict=True)]
    assert len(set(starts)) == 1
    assert lines[2].endswith("red line")


def test_the_widest_columns_are_cut_and_ids_last() -> None:
    for width in (50, 30):
        lines = list(table(("ID", "TOPIC", "TEXT"), ROWS, width=width))
        assert max(map(cell_len, lines)) <= width
        assert [line.split()[0] for line in lines] == ["ID", "a1b2c3d4", "ffeeddcc"]


def test_a_character_of_several_code_points_is_not_cut_apart() -> None:
    assert [truncate(f"{FAMILY}{FAMILY}", room) for room in (4, 3, 1)] == [FAMILY * 2, f"{FAMILY}…", "…"]
