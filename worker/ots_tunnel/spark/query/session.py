"""The session of a query's driver, with what Hadoop needs of a bucket."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.bucket import PROFILE_FILE, bucket_settings, profile_text
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.query.settings import BY_FILE_SYSTEM, LOG_FILES
from ots_tunnel.spark.sessions import has_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Hadoop's class for buckets, which comes with neither Spark nor Delta.
_BUCKETS: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_JARS: Final = "org.apache.hadoop:hadoop-aws of Spark's Hadoop"


@contextmanager
def session_settings(config: QueryConfig) -> Iterator[Mapping[str, str]]:
    """Settings that the session needs for the document's files; a profile that is written for it goes with the context.

    Raises:
        ConfigError: the credentials of the bucket cannot be read.
    """
    files = config.sink.files
    if not files.is_bucket:
        yield {}
        return
    if files.credentials is None:
        yield bucket_settings(files, None)
        return
    FileCredentials(files.credentials.directory).checked("sink.files.credentials.directory")
    if files.profile_file is not None:
        yield bucket_settings(files, files.profile_file)
        return
    with tempfile.TemporaryDirectory(prefix="ots-query-") as folder:
        profile = Path(folder, PROFILE_FILE)
        profile.write_text(profile_text(files.credentials.directory))
        yield bucket_settings(files, profile)


def start_session(config: QueryConfig, settings: Mapping[str, str]) -> SparkSession:
    """Start the session of a driver."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"ots-query {config.source.table}")
    for name, value in settings.items():
        builder.config(name, value)
    return builder.getOrCreate()


def log_by_file_system(spark: Any) -> None:
    """Let Spark write its logs of offsets and commits by Hadoop's FileSystem, where its release has that.

    By its own choice it takes FileContext, which without Hadoop's native library starts some twenty processes,
    `readlink` and `chmod`, for each batch. In a local folder, which checkpoints and logs of files are in, both rename a
    file in the same way.
    """
    for name in BY_FILE_SYSTEM:
        if has_class(spark, name):
            spark.conf.set(LOG_FILES, name)
            return


def check_buckets(spark: Any) -> None:
    """Refuse a session that cannot reach a bucket.

    Raises:
        QueryRefused: says what is missing.
    """
    if not has_class(spark, _BUCKETS):
        raise QueryRefused(f"the session: found no {_BUCKETS} for a bucket, allowed is one with {_JARS}")
