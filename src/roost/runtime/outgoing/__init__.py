"""Composing and posting of what turns and people send."""
