"""Commands for webhooks and hooks."""
