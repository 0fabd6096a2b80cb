"""Delivery of meeting posts."""
