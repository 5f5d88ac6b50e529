"""Following a table by its stream's shards, shared between any number of workers through a table of leases.

Theory of operation
-------------------
A tunnel has a service that gives its channels to clients. The raw Stream API has none: it lists shards, and every
caller with an iterator may read. So workers share the shards among themselves. An ordinary table has one row per shard,
its lease: who owns it, how far it is read, and a counter. A write is conditional on what its worker saw, nearly always
on the counter, so of two workers one wins. An owner that lives moves the counter again and again, so a counter that
stands still for the lease's duration tells that its owner is gone. No clock is shared.

The rows are those of the vendor's Java library, `com.aliyun.openservices:tablestore-streamclient` 1.0.0, and workers
of both kinds share a table: people move from one to the other worker by worker.

    shards      values of the Stream API: shards, iterators, pages
    lease       one lease: its row, the changes that may be made to it, and whether one that was not answered was made
    decide      what a worker does with what it saw: pure, clock and chance come from outside
    calls       the calls: `StreamClient` of the Stream API, `LeaseTable` of the leases' table
    holding     what a worker holds: its rounds, its renewals and checkpoints, and its farewell
    following   the worker without a destination: every held lease has a task, which carries out its shard's machine
    sinking     shards as channels: the pipeline of a tunnel's worker brings their records to a sink
    processing  `StreamWorker`: a user's processor for each shard, in the shape of the vendor's library

Two workers of one table need ids that differ, over both languages.
"""
