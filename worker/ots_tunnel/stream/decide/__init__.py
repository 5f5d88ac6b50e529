"""What a worker does with the leases that it saw: pure; the time and the order of random choices come from outside.

    sightings     since when each counter stands still, and whether its owner has expired
    share         how many leases a worker should own
    taking        the leases that it takes, and the one that it asks another worker for
    handing_over  the leases that it gives away: to a thief, or when it stops
    starting      whether a shard may be read: its parents come first
    sync          the leases to create and delete, from what the stream lists
    consumer      one shard on this worker: the state machine
    completion    whether a stream is read up to an end time

A worker's round, every few seconds: list the leases, `observe` them, `to_take`, `to_steal`. In between it renews what
it holds, and looks whether one of its leases `is_asked_for`.
"""
