"""Journal of runs: steps, approvals, and the record that a replay is compared with."""
