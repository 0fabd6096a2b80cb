"""Plots over time: lines, stacked areas and bars, as an SVG that works with a keyboard and a screen reader."""
