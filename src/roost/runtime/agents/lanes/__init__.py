"""Lanes of an awake agent: the queue, the intake from the store, and the tasks that serve them."""
