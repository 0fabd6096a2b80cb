"""Accounts of users, their invitations and identities, and the audit list."""
