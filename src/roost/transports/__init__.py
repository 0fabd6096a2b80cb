"""Transports: messages between nodes through NATS, or in RAM for tests of several Roosts in one process."""
