"""Admission limits: budgets, quotas, circuit breakers, quarantine."""
