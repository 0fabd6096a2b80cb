"""Pages of accounts, without script: signing in and out, invitations, the password, API tokens."""
