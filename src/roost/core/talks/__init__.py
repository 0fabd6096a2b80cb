"""Talks: messages, side channels and runs of a conversation."""
