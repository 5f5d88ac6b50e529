"""The leases that a worker holds: taken, renewed, and handed over.

settings    times
held_lease  one lease that is held: its renewals and checkpoints, one after the other, and its fence
keeper      the rounds in which leases are taken, renewed and handed over, until the worker stops
syncing     leases for new shards; the end of those whose shards the stream has dropped
"""
