"""Tables of Delta or Iceberg from a table and its tunnel: a change log, and a mirror that equals the table.

    from ots_tunnel.spark.lake import ChangeLog, Iceberg, Mirror

    changes.writeStream.foreachBatch(ChangeLog("/lake/orders_log")).option("checkpointLocation", ...).start()

    mirror = Mirror(spark, source, Iceberg("/lake/orders"))
    mirror.prepare()
    mirror.start("/lake/orders_checkpoint")

Pure: `fold` makes the changes of a key one row, `growth` decides which columns a table gets, `replays` whether a batch
may be written, `upkeep` when a table is compacted. `readiness` looks at the tunnel before a snapshot.

With Spark: `tables` are the formats, `transactions` tells whose batch it is, `attributes` asks what a frame has.
`row_frames` are rows in tasks, `mirror_rows` their frames, `projection` their columns, `merging` merges them.
`change_log` and `mirror` are what a program calls (docs/spark.md).
"""

from ots_tunnel.spark.lake.change_log import ChangeLog
from ots_tunnel.spark.lake.mirror import Mirror
from ots_tunnel.spark.lake.tables.places import Delta, Iceberg
from ots_tunnel.spark.lake.upkeep import Upkeep

__all__ = ["ChangeLog", "Delta", "Iceberg", "Mirror", "Upkeep"]
