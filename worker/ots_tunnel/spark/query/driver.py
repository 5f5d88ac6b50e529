"""The driver program of a query: follows the changes of a table, through a tunnel, into files or a table.

    python -m ots_tunnel.spark.query.driver --config /etc/ots/query.yaml

The document (`ots_tunnel.query.document`) names tunnel, files and the folder in which Spark keeps how far the query is.
The query is the source `ots` of `stream`, and Spark's own file sink, or a table by `lake`. Both know a batch that they
have written: each change is in one committed file, or counts once in the table. Killing the program at any moment is
harmless; the next one goes on in the same folder.

How it ends:

    SIGTERM, SIGINT         the query is stopped: its client hands the channels back, in 2 s that Spark leaves it; what
                            is not committed is read again by the next program. Exit code 143, so that a restart policy
                            starts that one
    a final error           of `failures.ends_query`: the records of a logged batch are gone, changes may be missing, a
                            folder belongs to another tunnel or query, a setting of Spark breaks the promise of the
                            files (`ots_tunnel.query.settings`), or a value has another type than its column.
                            Where there is a record (`ots_tunnel.query.record`), it gets the reason, and the exit code
                            is 0, because the Spark operator starts the program again after any other one; otherwise 2
    any other error         the record gets the reason as well, exit code 1: the next attempt may succeed
    OwnershipLost           the record belongs to another query by now: the query is stopped, exit code 1

Exit codes: 0 the record says why the query cannot go on, 1 it can be tried again, 2 the document, the pod or, without a
record, the query itself is wrong, 143 it was asked to end. An error is one line of the log;
behind it there may be a traceback of an interpreter of Spark whose JVM has gone (`BrokenPipeError`): it says nothing.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.errors import ConfigError, QueryRefused, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.logs import set_up_logs
from ots_tunnel.query.document import QueryConfig, load_query_config
from ots_tunnel.query.files import TABLES
from ots_tunnel.query.record import PassedGap, QueryProgress
from ots_tunnel.spark.cluster import ConfigMaps, in_cluster
from ots_tunnel.spark.failures import ends_query, line_of_job, one_line, told
from ots_tunnel.spark.query.figures import FiguresAge, during_batch, progress_of
from ots_tunnel.spark.query.folders import check_folders, leave_folders
from ots_tunnel.spark.query.recorder import Recorder
from ots_tunnel.spark.query.reports import last_progress, report_file
from ots_tunnel.spark.query.session import session_settings, start_session
from ots_tunnel.spark.query.start import check_settings, start_query
from ots_tunnel.spark.query.stop_request import StopRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between two looks at the query.
LOOK_SECONDS: Final = 1.0
#: Exit code of a program that SIGTERM ended, as shells have it.
ASKED_TO_END: Final = 143

logger = logging.getLogger(__name__)


class _NotStarted(Exception):
    """The query did not begin, because of an error that another attempt may not meet."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(prog="query", description="Follow the changes of a table into files with Spark.")
    parser.add_argument("--config", type=Path, required=True, help="query document (YAML)")
    flags = parser.parse_args(arguments)
    set_up_logs()
    # Spark's bridge to the JVM logs every call at INFO.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        config = load_query_config(flags.config)
        recorder = recorder_of(config)
        with session_settings(config) as settings:
            return _run_in_a_session(config, settings, recorder)
    except ConfigError as error:
        logger.error("%s", error, extra={"action": LogAction.TERMINAL_ERROR})
        return 2


def _run_in_a_session(config: QueryConfig, settings: Mapping[str, str], recorder: Recorder | None) -> int:
    stop = StopRequest()
    spark = start_session(config, settings)
    try:
        stop.listen()  # the session has its own way with SIGINT
        return run(config, spark, recorder, stop)
    finally:
        spark.stop()


def recorder_of(config: QueryConfig) -> Recorder | None:
    """What records the progress; None where the document names no record.

    Raises:
        ConfigError: the process does not run in a pod.
    """
    if config.progress is None:
        return None
    return Recorder(ConfigMaps(in_cluster(), config.progress.namespace), config.progress)


def run(config: QueryConfig, spark: SparkSession, recorder: Recorder | None, stop: StopRequest) -> int:
    """Follow the tunnel until the program is asked to end, or the query fails; return the exit code."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        check_settings(spark)
        if config.sink.files.format in TABLES:  # whose table knows the query by itself
            _follow(config, spark, recorder, stop)
        else:
            check_folders(config)
            try:
                _follow(config, spark, recorder, stop)
            finally:
                leave_folders(config)
    except (PySparkException, Py4JError) as error:
        line = line_of_job(error)
        return _failed(told(line), recorder, is_final=ends_query(line))
    except QueryRefused as error:
        return _failed(one_line(error), recorder, is_final=True)
    except (_NotStarted, OSError) as error:  # OSError: of the folders
        return _failed(one_line(error), recorder, is_final=False)
    except TunnelError as error:  # of the record
        logger.error("%s", one_line(error), extra={"action": LogAction.TERMINAL_ERROR})
        return 1
    if not stop.is_made:
        return _failed("the query was stopped by something else", recorder, is_final=False)
    logger.info("the query has stopped", extra={"action": LogAction.STOPPED})
    return ASKED_TO_END


def _follow(config: QueryConfig, spark: SparkSession, recorder: Recorder | None, stop: StopRequest) -> None:
    """Run the query; its errors and its end are those of `_watch`."""
    with report_file(spark.version) as report:
        try:
            query = start_query(config, spark, report)
        except QueryRefused:
            raise
        except TunnelError as error:
            raise _NotStarted(str(error)) from error
        try:
            _watch(query, report, recorder, stop)
        finally:
            query.stop()


def _watch(query: Any, report: Path | None, recorder: Recorder | None, stop: StopRequest) -> None:
    """Record what the query does; return once the program is asked to end, or the query has stopped.

    Raises:
        StreamingQueryException: the query has failed. OwnershipLost, ServiceError: see `Recorder.follow`.
    """
    logger.info("the query follows the tunnel", extra={"action": LogAction.STARTED})
    last: QueryProgress | None = None
    age = FiguresAge()
    try:
        while not stop.is_made and not query.awaitTermination(LOOK_SECONDS):
            # before the progress, which Spark replaces first: of a batch that ends now no look misses both
            is_active = query.status["isTriggerActive"]
            found = last_progress(query, report)
            if found is None:
                continue
            progress = progress_of(found)
            if progress.batch_id is not None and (last is None or progress.batch_id != last.batch_id):
                extra = {"action": LogAction.QUERY_PROGRESS, "rows": found["numInputRows"]}
                logger.info("batch %d is written", progress.batch_id, extra=extra)
            if recorder is not None:
                seconds = age.look(found, is_active=is_active, now=monotonic())
                recorder.follow(during_batch(progress, seconds))
            last = progress
    except BaseException:
        if recorder is not None:
            recorder.note(_gaps_of_the_last_batch(query, report))
        raise
    last, gaps = last or QueryProgress(), _gaps_of_the_last_batch(query, report)
    if recorder is not None and not set(gaps) <= set(last.passed_gaps):
        recorder.follow(replace(last, passed_gaps=gaps))


def _gaps_of_the_last_batch(query: Any, report: Path | None) -> tuple[PassedGap, ...]:
    """The gaps that were passed, as of the batch that has ended since the last look: no later driver finds them."""
    found = last_progress(query, report)
    return () if found is None else progress_of(found).passed_gaps


def _failed(text: str, recorder: Recorder | None, *, is_final: bool) -> int:
    """Tell why the query has ended, in one line; the exit code."""
    logger.error("%s", text, extra={"action": LogAction.TERMINAL_ERROR})
    if recorder is None:
        return 2 if is_final else 1
    try:
        recorder.end(text, is_final=is_final)
    except TunnelError as error:
        logger.error("the reason is not recorded: %s", one_line(error), extra={"action": LogAction.TERMINAL_ERROR})
        return 1
    return 0 if is_final else 1


if __name__ == "__main__":
    sys.exit(main())
