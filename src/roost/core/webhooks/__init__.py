"""Webhooks: facts that are posted to URLs, and requests of other programs."""
