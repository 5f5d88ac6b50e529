"""A model of the vendor's Java library `tablestore-streamclient` 1.0.0: its rules, with what they lack.

table        calls of the leases: eleven tries, no look at what became of a call without an answer
coordinator  the rounds: takes, renewals from the time of their answer, thieves found by the counter of that moment
consumer     one shard: waits for its parents, reads, processes, shuts down
processing   the processor of a user: a change takes effect at once, then the checkpoint is stored
worker       the main loop; any error ends it, and a kind stop hands nothing over

What is left out: threads (a task is one), the pool of renewals, and a pause of 20 ms, which is half a second here.
"""
