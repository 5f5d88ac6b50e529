"""A fleet whose operator has two replicas, which share a Lease and take turns by the real leader election."""
