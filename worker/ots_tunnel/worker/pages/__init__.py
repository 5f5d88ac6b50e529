"""One page of records in memory: its room in the budget of bytes, its records, and where the end time cuts it."""
