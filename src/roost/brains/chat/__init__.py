"""What all chat models have in common: what they are shown, how they act, and how they get to an answer."""
