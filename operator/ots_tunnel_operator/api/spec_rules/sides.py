"""What the source and the sink require of each other, and of the rest of the spec."""

from __future__ import annotations

from typing import Final

from ots_tunnel_operator.api.schema import rule
from ots_tunnel_operator.api.sink import listed, sink_kind
from ots_tunnel_operator.sink_refusals import REFUSING_SINKS

SIDES_RULES: Final = (
    rule(
        "self.delivery.onPermanentError == 'Fail' || "
        + " || ".join(f"has(self.sink.{name})" for name in (*REFUSING_SINKS, "files.columns")),
        f"delivery.onPermanentError other than Fail is only for the sinks {listed(REFUSING_SINKS)}, and for "
        "files with files.columns, which can refuse a single record",
        field=".delivery.onPermanentError",
        found=f"'found ' + self.delivery.onPermanentError + ' with sink ' + {sink_kind('self.sink')}",
    ),
    rule(
        "!has(self.sink.tablestore) || self.sink.tablestore.endpoint != self.source.endpoint || "
        "self.sink.tablestore.instance != self.source.instance || "
        "self.sink.tablestore.table != self.source.table",
        "sink.tablestore.table must not be source.table of the same instance: copying a table into itself never ends",
        field=".sink.tablestore.table",
    ),
    rule(
        "self.deletionPolicy != 'Delete' || !has(self.source.tunnel) || "
        "self.source.tunnel.managementPolicy == 'CreateIfMissing'",
        "deletionPolicy Delete needs tunnel.managementPolicy CreateIfMissing: "
        "only tunnels that the object created are deleted",
        field=".deletionPolicy",
    ),
    rule(
        "self.deletionPolicy != 'Delete' || !has(self.source.stream)",
        "deletionPolicy must be Retain with source.stream: the operator deletes no table of leases, which "
        "other workers may use",
        field=".deletionPolicy",
        found="'found ' + self.deletionPolicy",
    ),
    rule(
        "!has(self.source.stream) || self.engine.baseData == 'Workers'",
        "engine.baseData must be Workers with source.stream, which has changes alone: use source.tunnel of "
        "type BaseAndStream to copy existing rows",
        field=".engine.baseData",
        found="'found ' + self.engine.baseData",
    ),
    rule(
        "!has(self.source.stream) || !has(self.sink.tablestore) || "
        "self.sink.tablestore.endpoint != self.source.endpoint || "
        "self.sink.tablestore.instance != self.source.instance || "
        "self.sink.tablestore.table != self.source.stream.leaseTable",
        "sink.tablestore.table must not be source.stream.leaseTable of the same instance: "
        "nothing else may use a table of leases",
        field=".sink.tablestore.table",
    ),
)
