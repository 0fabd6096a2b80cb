"""Webhooks and hooks: facts to other programs, and requests from them."""
