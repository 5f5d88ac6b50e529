"""The changes of a tunnel as a source of Structured Streaming (`spark.readStream`).

Pure: `marks` orders records, `offsets` and `offset_json` are where a query stands, `batch_plan` chooses what a batch
has, `cut` finds a batch again when it is replayed, `ledger` has the pages between the tunnel and Spark.

With input and output: `hand_over` is the sink that a worker of the tunnel writes to, `tunnel_calls` what is asked of
the service before, `alignment` what its checkpoints are set to and compared with, `follower` the thread of both.
`options` and `rows` are what Spark sees; `reader` is what it calls.
"""
