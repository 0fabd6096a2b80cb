"""Models that the owner connects while Roost runs: keys of providers, and servers on this machine."""
