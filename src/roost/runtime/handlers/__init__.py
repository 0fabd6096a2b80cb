"""Handlers of the service: one file per namespace."""
