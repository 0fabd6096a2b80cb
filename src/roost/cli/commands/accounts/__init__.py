"""Commands about accounts: API tokens."""
