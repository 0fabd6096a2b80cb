"""Envelopes: everything that can be in an inbox, and how an attempt to handle it ended."""
