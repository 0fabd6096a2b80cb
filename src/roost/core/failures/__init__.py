"""Failures: how they are classified, and what they do to providers and envelopes."""
