"""First visit: agents as cards, the Guide's buttons, and the connecting of models."""
