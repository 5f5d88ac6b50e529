"""The stream of an object without a tunnel, as passes see it: shards take the place of channels.

view         pure: a description as of a tunnel, from shards and leases
leases       the leases of their table, and whether it fits
checkpoints  the lag of a shard by one record at the checkpoint of its lease
observer     the calls of one look, and what they mean
"""
