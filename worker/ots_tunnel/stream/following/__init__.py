"""Follows the shards whose leases a worker holds; what becomes of the records is left to the work on each shard.

settings         times of the rounds, and where reading begins
work             the interface of the work on one shard
shard_task       one held lease: carries out the decisions of its state machine
parents          whether a shard's parents are read
reader           reads a shard's pages, and notices what was trimmed
first_place      where a shard's first page begins becomes its checkpoint
gaps             changes that may be missing
owner            what a follower needs of its worker
stream_sync      the start: stream, table, leases; and the rounds in which shards come and go
followed_shards  a task for each held lease
follower         the whole: these, the keeper, and the end
"""
