"""Log of a meeting: entries, their order, and how copies are brought together."""
