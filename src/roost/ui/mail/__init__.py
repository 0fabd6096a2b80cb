"""Pages of mail: mailboxes of the user and of their agents, threads, and new mail."""
