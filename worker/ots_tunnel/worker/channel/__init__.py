"""One channel on this worker, from the decisions of its state machine to the reads and writes of its records."""
