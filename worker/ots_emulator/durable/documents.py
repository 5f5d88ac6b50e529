"""Tables, partitions, tunnels, channels and clients as documents: JSON values out and back in; pure.

Tunnels, channels and clients are stored with all fields of their classes, so a new field is stored as well. A field
that is missing in an older document gets its default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any, Final

from ots_emulator.tables.cells import key_cells
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.keys import Key, KeySchema
from ots_emulator.tables.listener import TableListener
from ots_emulator.tables.options import DefinedColumn, FixedOptions, Partitioning, TableOptions
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.sent_keys import read_primary_key
from ots_emulator.tables.table import OnChildren, Table
from ots_emulator.tunnels.channel import BaseSlice, Client, TunnelChannel
from ots_emulator.tunnels.tokens import read_stream_token
from ots_emulator.tunnels.tunnel import Tunnel
from ots_tunnel.model import FINISHED, ChannelStatus, KeyColumn, KeyType, StreamConfig, TunnelType

Document = dict[str, Any]
Kept = Table | Partition | Tunnel | TunnelChannel | Client
#: ASCII alone, so that no text of a caller can keep a document from being written.
_dumps: Final = json.JSONEncoder(separators=(",", ":")).encode


def _names(kind: type, *without: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in without)


CHANNEL_FIELDS: Final = _names(TunnelChannel, "source")
TUNNEL_FIELDS: Final = _names(Tunnel, "channels", "clients")
CLIENT_FIELDS: Final = _names(Client)
_channel_values: Callable[[TunnelChannel], tuple[Any, ...]] = attrgetter(*CHANNEL_FIELDS)
_tunnel_values: Callable[[Tunnel], tuple[Any, ...]] = attrgetter(*TUNNEL_FIELDS)
_client_values: Callable[[Client], tuple[Any, ...]] = attrgetter(*CLIENT_FIELDS)


def facts_of(kept: Kept) -> tuple[Any, ...]:
    """Return everything that can change about an object; equal facts mean an equal document."""
    match kept:
        case TunnelChannel():
            return _channel_values(kept), getattr(kept.source, "closed_us", None)
        case Tunnel():
            return _tunnel_values(kept)
        case Client():
            return _client_values(kept)
        case Partition():
            return kept.closed_us, kept.base
        case Table():
            log = kept.log
            head = None if log is None else (log.stream_id, log.retention_hours, log.enabled_us, log.origin_columns)
            return kept.options, kept.fixed, kept.partition_aim, kept.last_auto_increment, head


def kind_and_body(kept: Kept, schema: KeySchema, owner: int) -> tuple[str, int, str]:
    """Return kind, owner and text of a document; `schema` is that of the table it belongs to."""
    match kept:
        case TunnelChannel():
            kind, document = "channel", channel_document(kept, schema)
        case Tunnel():
            kind, document = "tunnel", tunnel_document(kept)
        case Client():
            kind, document = "client", client_document(kept)
        case Partition():
            kind, document = "partition", partition_document(kept, schema)
        case Table():
            kind, document = "table", table_document(kept)
    return kind, owner, _dumps(document)


def instance_body(name: str, partition_aims: Mapping[str, int]) -> tuple[str, int, str]:
    """Return kind, owner and text of the document of an instance."""
    return "instance", 0, _dumps({"name": name, "partition_aims": partition_aims})


# Tables


def table_document(table: Table) -> Document:
    """Describe a table without its rows."""
    log = table.log
    return {
        "name": table.name,
        "columns": [[column.name, column.type.value, column.auto_increment] for column in table.schema.columns],
        "options": asdict(table.options),
        "defined": [[column.name, column.type] for column in table.fixed.defined],
        "created_us": table.created_us,
        "partition_aim": table.partition_aim,
        "traits": _fixed_document(table.fixed),
        "last_auto_increment": table.last_auto_increment,
        "log": None if log is None else _log_document(log),
    }


def _log_document(log: ChangeLog) -> Document:
    return {
        "stream_id": log.stream_id,
        "retention_hours": log.retention_hours,
        "enabled_us": log.enabled_us,
        "last_us": log.last_us,
        "origin_columns": log.origin_columns,
    }


def _fixed_document(fixed: FixedOptions) -> Document:
    return {"local_transactions": fixed.local_transactions, "encryption": fixed.encryption, "cuts": fixed.cuts}


def _fixed_of(document: Document) -> FixedOptions:
    traits = document.get("traits", {})
    encryption = traits.get("encryption")
    return FixedOptions(
        tuple(DefinedColumn(name, kind) for name, kind in document["defined"]),
        traits.get("local_transactions", True),
        None if encryption is None else tuple(encryption),
        tuple(traits.get("cuts", ())),
    )


def table_of(document: Document, partition_rows: int, listener: TableListener, on_children: OnChildren) -> Table:
    """Build a table without rows and log; the other arguments are those of `Table`."""
    table = Table(
        document["name"],
        KeySchema([KeyColumn(name, KeyType(kind), auto) for name, kind, auto in document["columns"]]),
        TableOptions(**document["options"]),
        now_us=document["created_us"],
        fixed=_fixed_of(document),
        partitioning=Partitioning(document["partition_aim"], partition_rows),
        listener=listener,
        on_children=on_children,
    )
    table.last_auto_increment = document.get("last_auto_increment", 0)
    return table


def partition_document(partition: Partition, schema: KeySchema) -> Document:
    """Describe a partition without its entries."""
    return {
        "id": partition.id,
        "start": key_text(schema, partition.start),
        "parents": partition.parents,
        "created_us": partition.created_us,
        "closed_us": partition.closed_us,
        "base": partition.base,
    }


def partition_of(document: Document, schema: KeySchema) -> Partition:
    """Build a partition without entries."""
    values = {**document, "start": key_of(schema, document["start"]), "parents": tuple(document["parents"])}
    return Partition(**values)


def key_text(schema: KeySchema, key: Key) -> str:
    """Encode a key or bound as text."""
    return schema.encode(key).hex()


def key_of(schema: KeySchema, text: str) -> Key:
    """Decode a key or bound."""
    return schema.bound(read_primary_key(bytes.fromhex(text)))


# Tunnels


def tunnel_document(tunnel: Tunnel) -> Document:
    """Describe a tunnel without channels and clients."""
    document = dict(zip(TUNNEL_FIELDS, _tunnel_values(tunnel), strict=True))
    return {**document, "config": None if tunnel.config is None else asdict(tunnel.config)}


def tunnel_of(document: Document) -> Tunnel:
    """Build a tunnel without channels and clients."""
    config = document["config"]
    values = {**document, "type": TunnelType(document["type"])}
    return Tunnel(**{**values, "config": None if config is None else StreamConfig(**config)})


def channel_document(channel: TunnelChannel, schema: KeySchema) -> Document:
    """Describe a channel; `schema` is its table's."""
    source = channel.source
    document = dict(zip(CHANNEL_FIELDS, _channel_values(channel), strict=True))
    if isinstance(source, BaseSlice):
        return {**document, "slice": [key_text(schema, source.start), key_text(schema, source.end)]}
    # Read only for a partition that has left the log, which keeps its end and no entry.
    return {**document, "partition": {**partition_document(source, schema), "base": source.end}}


def channel_of(document: Document, schema: KeySchema, partitions: Mapping[str, Partition]) -> TunnelChannel:
    """Build a channel; a partition that has left the log is restored from the channel's document."""
    values = {**document, "status": ChannelStatus(document["status"])}
    if "slice" in values:
        start, end = values.pop("slice")
        return TunnelChannel(source=BaseSlice(key_of(schema, start), key_of(schema, end)), **values)
    stored = values.pop("partition")
    source = partitions.get(stored["id"])
    if source is None:
        source = partition_of(stored, schema)
        # The document may be older than the last entries of an open partition. The checkpoint is within them.
        source.base = max(source.base, _position_of(document["token"], source.id))
    return TunnelChannel(source=source, **values)


def _position_of(token: str, partition_id: str) -> int:
    return 0 if token == FINISHED else read_stream_token(token, partition_id).position


def client_document(client: Client) -> Document:
    """Describe a connected client."""
    return dict(zip(CLIENT_FIELDS, _client_values(client), strict=True))


def client_of(document: Document) -> Client:
    """Build a connected client."""
    return Client(**document)


# Rows


def key_of_image(schema: KeySchema, image: bytes) -> Key:
    """Return the key of a stored row."""
    return schema.parse(key_cells(image, len(schema.columns)))
