"""The kinds of sinks that are measured: our goals, the peers and their libraries, and the lengths of the runs.

The goals are CPU seconds per million rows, and how many times better than the better peer.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.bench_scene import declared_columns
from tests.bench.contenders import Contender, Job
from tests.bench.throughput import Sizes

#: A million rows until Java's compiler is done would be more than the time of this part allows.
SIZES: dict[Contender, Sizes] = {
    Contender.OURS: (250_000, 1_000_000),
    Contender.JAVA: (500_000, 800_000),
    Contender.GO: (150_000, 400_000),
}


@dataclass(frozen=True, slots=True)
class SinkWork:
    """One kind of sink.

    Args:
        name: of the work, for `--only`.
        mode: of `Job`.
        words: for people.
        most: goal for our CPU seconds per million rows.
        peers: the library that a peer writes with.
        times: how many times better than the better peer, None without a goal.
        columns: name and type of each column of typed rows.
    """

    name: str
    mode: str
    words: str
    most: float
    peers: dict[Contender, str]
    times: float | None = None
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def contenders(self) -> tuple[Contender, ...]:
        return (Contender.OURS, *self.peers)

    def job(self, to: str, mark: int) -> Job:
        """What a worker is asked to do."""
        return Job(self.mode, to=to, columns=self.columns, mark=mark)


_JSON = {Contender.JAVA: "Jackson", Contender.GO: "encoding/json"}

WORKS = (
    SinkWork("lines", "lines", "JSON lines into files", 1.2, _JSON, 4),
    SinkWork("stdout", "lines", "JSON lines to standard output", 1.2, _JSON, 4),
    SinkWork("parquet", "parquet", "changes in Parquet", 2.2, {Contender.JAVA: "parquet-avro"}, 3),
    SinkWork("typed", "typed", "typed Parquet", 1.2, {Contender.JAVA: "parquet-avro"}, 4, declared_columns()),
    SinkWork("kafka", "kafka", "Kafka", 2.5, {Contender.JAVA: "kafka-clients", Contender.GO: "franz-go"}, 3),
    SinkWork("http", "http", "CloudEvents over http", 2.0, {Contender.GO: "net/http"}),
)
