"""Rendering of answers on the server: Markdown as safe HTML, block by block."""
