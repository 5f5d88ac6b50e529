"""The worker: one process that consumes one tunnel into one sink.

    worker     the process: connects, runs one session after another, drains
    session    one connected client: heartbeats, and the channels they bring and take away
    channel    one channel: carries out the decisions of the state machine in `protocol.channel`
    consumption, pipeline, read_ahead, unconfirmed, checkpointer    the way of a channel's records
    status, status_server, metrics    the worker as probes, scrapers and the operator see it

`docs/worker.md` describes it from outside.
"""
