"""The leases that a worker holds: taken, renewed, and handed over.

settings     times
held_lease   one lease that is held: its renewals and checkpoints, one after the other, and its fence
seen_leases  what a worker sees of all leases, and of another worker under its id
work         what is called when leases come and go
holding      the leases that a worker holds; what its rounds share
take_round   the rounds in which leases are taken and asked for
look_round   the rounds in which a worker looks who has asked for its leases, and names heirs when it stops
keeper       the loops of these rounds and of the renewals, until the worker stops
waiting      the pause between two rounds
syncing      leases for new shards; the end of those whose shards the stream has dropped
"""
