"""The worker: one process that consumes one tunnel into one sink.

    worker     the process: connects, runs one session after another, drains
    run        what every run of a worker has: sink, status, the orders to stop; also that of a worker of shards
    start      the steps before a session: preflight, opening the sink, Connect
    session/   one connected client: heartbeats, the channels they bring and take away, whether the tunnel is complete
    channel/   one channel: the decisions of its state machine carried out, the way of its records
    gaps/      changes that may be missing because nobody read them in time
    status/    the worker as probes, scrapers and the operator see it
    progress/  how far a channel is, and its checkpoint
    pages/     one page of records in memory, and the budget of bytes for all of them

`settings`, `context` and `stop_order` are what these rooms share. Imports go downwards only, in this order.
`docs/worker.md` describes the worker from outside.
"""
