"""The methods for accounts: users, their passwords, deletion and export."""
