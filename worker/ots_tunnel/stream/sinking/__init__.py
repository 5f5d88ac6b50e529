"""Shards as channels of a worker: the pipeline of tunnels brings their records to a sink.

cursor    a shard's pages and its lease's checkpoint, as the pipeline asks for them
context   what a channel's consumption needs of its holder
work      the work on one shard
views     shards as the status shows them
worker    the worker: sink, follower, status
settings  the settings of its document
opening   the worker of a document, with its connections
"""
