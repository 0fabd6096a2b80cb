"""Simulation of a whole cluster: several nodes on one store and one loop, from one seed."""
