"""A program of PySpark that follows a tunnel, and writes each change once it has the one before.

    python -m tests.bench.programs.spark_single_changes JSON

JSON has `options` of the stream, `changes`, their number, and `folder`. A JSON line with `rows` ends each change.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from tablestore import Condition, OTSClient, Row

from ots_tunnel.spark import register
from tests.bench.bench_scene import key_of, row_of
from tests.support.programs.go_program import ACCOUNT

#: Seconds between two looks for a batch, of which each has one change, and until one has to be there.
POLL, DEADLINE = 0.02, 60.0


def main() -> None:
    given = json.loads(sys.argv[1])
    options = given["options"]
    spark = SparkSession.builder.appName("bench").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    changes = spark.readStream.format("ots").options(**options).load()
    writer = changes.writeStream.format("noop").option("checkpointLocation", str(Path(given["folder"]) / "checkpoint"))
    query = writer.start()
    client = OTSClient(options["endpoint"], ACCOUNT["key-id"], ACCOUNT["key-secret"], options["instance"])
    for number in range(given["changes"]):
        cells = [(cell.name, cell.value) for cell in row_of(number)]
        client.put_row(options["table"], Row(list(key_of(number)), cells), Condition("IGNORE"))
        late = time.monotonic() + DEADLINE
        while (query.lastProgress or {"batchId": -1})["batchId"] < number:
            if not query.isActive or time.monotonic() > late:
                raise RuntimeError(f"change {number} did not come: {query.exception() or query.status}")
            time.sleep(POLL)
        print(json.dumps({"rows": 1}), flush=True)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
