"""Stories of workers that share the shards of a stream by a table of leases, ours beside a model of the Java library's.

scenario   what a seed stands for
faults     what can go wrong
region     one story: workers, writers, faults, and what has to be right at the end
ledger     what the service executed for them: writes to the leases, reads of shards
sharing    the judge of these calls: complete, in order, one owner
ownership  the judge of the leases: owned soon, and at rest in the end
moving     the judge of their moves: each has a cause, and in a minute there are only so many
library/   the model of the vendor's Java library

What is promised beside workers of the library: complete, and in order of each key within one reading of a shard. Their
own writes are not fenced, so the copy is compared with the source only in stories without them. One of the library's
calls breaks the promise of a single owner: it writes a new lease in any case, and so may reset one that another worker
has just taken. What follows such a reset is not judged (`sharing`).

A worker of the library that holds a lease and reads the shard no more (docs/stream.md) is ended after the faults,
as people are told to.
"""
