"""Webhooks: stores chosen facts with their commits, and posts them."""
