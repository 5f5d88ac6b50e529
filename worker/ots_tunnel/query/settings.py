"""Settings of Spark that would break what a query promises of its files, for whoever starts one. Pure, free of Spark.

The promise is that each change is in one file that Spark's log of the files has (`spark.query.folders`). It rests on

    the log of the files      Spark's own way to commit a stream's files writes it; no other one does, and then a batch
                              that is repeated is written again
    whole files in the logs   batches and files are logged by a file that appears at once and only if it is not there:
                              else a driver reads half of one, or two drivers log the same batch. Both ways that Spark
                              has do that in a local folder: it looks whether the file is there, and renames another
                              one to it. The driver takes the one that starts no processes
    Delta's own way to commit a table's commits appear at once and only if there is none of that number: else two
                              drivers write the same one, and one of both batches is gone. In a bucket Delta's own way
                              sees to that within one driver; the one with DynamoDB does it among all
    one attempt of a task     with speculation a second one writes the same rows beside the first. Spark's log has one
                              of both files, other readers of the folder see both

Nothing else that Spark 4.2 has under `spark.sql.streaming` touches it. `spark.sql.sources.commitProtocolClass` and the
committers of Hadoop are for frames that no stream writes: the query does not use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

_LOG: Final = "without Spark's own commits of files its log does not have them, and a repeated batch is written twice"
_WHOLE: Final = "the files of Spark's logs have to appear whole and once, or a batch is lost or written twice"
_COMMITS: Final = "Delta's commits have to appear whole and once, or a batch is lost"
_ONCE: Final = "a second attempt of a task leaves rows twice in the folder, of which only Spark's log knows"

#: Spark's setting of what writes its logs.
LOG_FILES: Final = "spark.sql.streaming.checkpointFileManagerClass"
#: The way without processes, by its names from PySpark 4.1 on and before.
BY_FILE_SYSTEM: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
)
#: Spark keeps the classes that it compiles for its plans, and its own number, 100, is less than one batch of a
#: mirror needs: what is dropped is needed again soon, so every batch compiled 54 to 105 of them anew (counted).
KEPT_CLASSES: Final[Mapping[str, str]] = {"spark.sql.codegen.cache.maxEntries": "1000"}
#: Setting -> (values that keep the promise, in lower case; why others do not).
RESERVED: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "spark.sql.streaming.commitProtocolClass": ((), _LOG),
    LOG_FILES: (tuple(name.lower() for name in BY_FILE_SYSTEM), _WHOLE),
    "spark.hadoop.fs.file.impl": ((), _WHOLE),
    "spark.hadoop.fs.AbstractFileSystem.file.impl": ((), _WHOLE),
    "spark.delta.logStore.class": ((), _COMMITS),
    "spark.delta.logStore.file.impl": ((), _COMMITS),
    "spark.delta.logStore.s3a.impl": (("io.delta.storage.s3dynamodblogstore",), _COMMITS),
    "spark.hadoop.fs.s3a.impl": ((), _COMMITS),
    "spark.speculation": (("false",), _ONCE),
}


def refused_settings(settings: Mapping[str, str]) -> Iterator[str]:
    """What is to be said of each setting that breaks the promise: what was found, what is allowed, and why."""
    for name, (allowed, why) in RESERVED.items():
        if name in settings and settings[name].strip().lower() not in allowed:
            yield f"found {name}, allowed is {' or '.join(('none', *allowed))}: {why}"
