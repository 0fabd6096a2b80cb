"""Page of approvals: what waits for a decision, what was decided, and what is always allowed."""
