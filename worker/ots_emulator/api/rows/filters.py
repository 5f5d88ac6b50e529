"""Filters of reads and column conditions of writes; pure.

A filter applies to the columns and versions that the read selects; any other column counts as missing. Key columns are
always present. A column condition applies to the whole row.

Source: docs/data-plane.md 2.1; the vendor's documentation of filters.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message

from ots_emulator.api.rows.change_check import VALUE_BYTES, check_name, value_too_long
from ots_emulator.api.rows.patterns import Pattern, PatternError, Work, pattern_of
from ots_emulator.refusal import request_invalid
from ots_emulator.tables.cells import Cell
from ots_emulator.tables.sent_keys import key_columns
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Marker, Value
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.rpc import check_text
from ots_tunnel.protocol.plainbuffer.values import decode_value, encode_value

#: Most filters in one, composites and their parts counted alike.
FILTER_LIMIT: Final = 32
_COMPARE: Final[Mapping[int, Callable[[Any, Any], bool]]] = {
    pb.CT_EQUAL: operator.eq,
    pb.CT_NOT_EQUAL: operator.ne,
    pb.CT_GREATER_THAN: operator.gt,
    pb.CT_GREATER_EQUAL: operator.ge,
    pb.CT_LESS_THAN: operator.lt,
    pb.CT_LESS_EQUAL: operator.le,
}
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def _double(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _integer(text: str) -> int:
    _double(text)
    return int(text)


#: Types of a matched part (the vendor's documentation of filters).
_CASTS: Final[Mapping[int, Callable[[str], Value]]] = {
    pb.VT_INTEGER: _integer,
    pb.VT_DOUBLE: _double,
    pb.VT_STRING: str,
}
_EXISTENCE: Final = (pb.CT_EXIST, pb.CT_NOT_EXIST)

Parsed = TypeVar("Parsed", bound=Message)
#: Key columns of a row: name -> type byte and payload.
KeyValues = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class TransferRule:
    """Takes a part of a text and converts it; a value it cannot be applied to counts as missing, which is a guess."""

    pattern: Pattern
    cast: Callable[[str], Value]
    work: Work

    def apply(self, encoded: bytes) -> bytes | None:
        """Return the encoded part of an encoded value, None without a match."""
        value = decode_value(encoded)
        part = self.pattern.find(value, self.work) if isinstance(value, str) else None
        if part is None:
            return None
        try:
            return encode_value(self.cast(part))
        except (ValueError, CodecError):
            return None


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """Compares the versions of one column with a value; `wanted` is None for tests of existence."""

    comparator: int
    name: bytes
    wanted: Value | Marker | None
    filter_if_missing: bool
    latest_only: bool
    rule: TransferRule | None = None

    def passes(self, cells: Sequence[Cell], key: KeyValues) -> bool:
        """Whether a row passes; a row that does not exist has no cells and no key."""
        name = self.name
        values = [key[name]] if name in key else [cell.value for cell in cells if cell.name == name]
        if self.comparator in _EXISTENCE:
            return bool(values) == (self.comparator == pb.CT_EXIST)
        if self.latest_only:
            values = values[:1]
        if self.rule is not None:
            values = [part for value in values if (part := self.rule.apply(value)) is not None]
        if not values:
            return not self.filter_if_missing
        return any(map(self._compares, values))

    def _compares(self, encoded: bytes) -> bool:
        found, wanted = decode_value(encoded), self.wanted
        if type(found) is not type(wanted):
            return self.comparator == pb.CT_NOT_EQUAL
        return bool(_COMPARE[self.comparator](_ordered(found), _ordered(wanted)))

    def paginate(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        """Return all cells."""
        return cells


@dataclass(frozen=True, slots=True)
class Composite:
    """Joins filters: NOT has one part, AND and OR have two or more."""

    combinator: int
    parts: tuple[Filter, ...]

    def passes(self, cells: Sequence[Cell], key: KeyValues) -> bool:
        """Whether a row passes."""
        results = (part.passes(cells, key) for part in self.parts)
        if self.combinator == pb.LO_NOT:
            return not next(results)
        return all(results) if self.combinator == pb.LO_AND else any(results)

    def paginate(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        """Apply the paginations among the parts."""
        for part in self.parts:
            cells = part.paginate(cells)
        return cells


@dataclass(frozen=True, slots=True)
class Pagination:
    """Passes every row and selects a window of its columns."""

    offset: int
    limit: int

    def passes(self, cells: Sequence[Cell], key: KeyValues) -> bool:
        """Return True: every row passes."""
        return True

    def paginate(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        """Return the cells of the columns within the window."""
        columns = [list(versions) for _, versions in groupby(cells, key=lambda cell: cell.name)]
        return [cell for versions in columns[self.offset : self.offset + self.limit] for cell in versions]


Filter = ColumnTest | Composite | Pagination


def key_values(key: bytes) -> dict[bytes, bytes]:
    """Return the key columns of a row, by name."""
    return {name.encode(): encode_value(value) for name, value in key_columns(key)}


def read_filter(encoded: bytes, work: Work) -> Filter:
    """Read a filter or column condition; `work` is what the expressions of its request may still do.

    Raises:
        RequestRefusal: it is malformed or has too many parts, or one of them has a name or value that no column has.
    """
    return _filter_of(_parsed(pb.Filter, encoded, "filter"), Counter(filters=1), work)


def _parsed(kind: type[Parsed], encoded: bytes, name: str) -> Parsed:
    """Parse a message of a filter, which the service calls `name`.

    Raises:
        RequestRefusal: it is malformed.
    """
    try:
        message = kind.FromString(encoded)
        check_text(message)
    except (DecodeError, CodecError) as error:
        raise request_invalid(f"Deserialize {name} failed.") from error
    return message


def _filter_of(message: pb.Filter, seen: Counter[str], work: Work) -> Filter:
    if message.type == pb.FT_SINGLE_COLUMN_VALUE:
        return _column_test(_parsed(pb.SingleColumnValueFilter, message.filter, "relation filter"), work)
    if message.type == pb.FT_COMPOSITE_COLUMN_VALUE:
        composite = _parsed(pb.CompositeColumnValueFilter, message.filter, "composite filter")
        count = len(composite.sub_filters)
        # Counted where they are listed, so the limit also bounds the depth, and comes before the operator's rule.
        seen["filters"] += count
        if seen["filters"] > FILTER_LIMIT:
            raise request_invalid(f"The count of filter exceeds the max: {FILTER_LIMIT}.")
        if composite.combinator == pb.LO_NOT and count != 1:
            raise request_invalid("Invalid NOT operator: the number of sub-filters must be 1.")
        if composite.combinator != pb.LO_NOT and count < 2:
            raise request_invalid("Invalid AND/OR operator: the number of sub-filters must be more than 1.")
        return Composite(composite.combinator, tuple(_filter_of(part, seen, work) for part in composite.sub_filters))
    page = _parsed(pb.ColumnPaginationFilter, message.filter, "column pagination filter")
    if page.offset < 0:
        raise request_invalid("Offset in ColumnPaginationFilter must be greater than or equal to 0.")
    if page.limit <= 0:
        raise request_invalid("Limit in ColumnPaginationFilter must be greater than 0.")
    return Pagination(page.offset, page.limit)


def _column_test(single: pb.SingleColumnValueFilter, work: Work) -> ColumnTest:
    check_name(single.column_name.encode())
    wanted = None if single.comparator in _EXISTENCE else _wanted(single.column_value)
    if isinstance(wanted, (str, bytes)):
        size = len(wanted.encode() if isinstance(wanted, str) else wanted)
        if size > VALUE_BYTES:
            raise value_too_long(single.column_name, size)
    return ColumnTest(
        single.comparator,
        single.column_name.encode(),
        wanted,
        single.filter_if_missing,
        single.latest_version_only,
        _transfer_rule(single.value_trans_rule, work) if single.HasField("value_trans_rule") else None,
    )


def _wanted(encoded: bytes) -> Value | Marker:
    try:
        return decode_value(encoded)
    except CodecError as error:
        raise request_invalid("Deserialize relation filter failed.") from error


def _transfer_rule(rule: pb.ValueTransferRule, work: Work) -> TransferRule:
    cast = _CASTS.get(rule.cast_type) if rule.HasField("cast_type") else str
    if cast is None:
        raise request_invalid(
            "Invalid filter: cast_type of value_trans_rule must be VT_INTEGER, VT_DOUBLE or VT_STRING, "
            f"found: {pb.VariantType.Name(rule.cast_type)}."
        )
    try:
        return TransferRule(pattern_of(rule.regex, work), cast, work)
    except PatternError as error:
        raise request_invalid(f"Invalid filter: regex of value_trans_rule: {error}.") from error


def _ordered(value: Value | Marker | None) -> float | bytes:
    if isinstance(value, str):
        return value.encode()
    return 0 if value is None or isinstance(value, Marker) else value
