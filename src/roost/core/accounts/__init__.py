"""Accounts: the API tokens of users."""
