"""The calls of a worker: the Stream API, and the table of leases."""
