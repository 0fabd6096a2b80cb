"""Commands for talks."""
