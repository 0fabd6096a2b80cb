"""Sign-in: who has to, how credentials are verified, and how guessing is slowed."""
