"""The interface of the vendor's Stream Client: a processor for each shard, which stores its own checkpoints.

processor     what the user's code implements, and what it gets
checkpointer  stores checkpoints, from a thread or from the event loop
callbacks     calls of the user's code that end with the lease
parts         what the works of one worker share
steps         reads and pauses that end with the order to stop
pages         gives a shard's pages to a processor
work          the work on one shard
settings      configuration
worker        `StreamWorker`
"""
