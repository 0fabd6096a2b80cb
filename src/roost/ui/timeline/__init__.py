"""Bars over time, in lanes."""
