"""Mutations of requests: by meaning, by row, by field, by byte, by header."""

from __future__ import annotations

import base64
import random
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.protocol.http.operations import OPERATIONS_BY_PATH
from ots_tunnel.protocol.http.rpc import build_request
from ots_tunnel.protocol.http.signing import content_md5, sign_v2, sign_v4
from tests.fuzz.answers import SECRET
from tests.fuzz.bytewise import mutate_bytes, mutate_fields
from tests.fuzz.rows import INT_MAX, INT_MIN, ROW_FIELDS, WireRow, mutate_row
from tests.fuzz.world import FILTERS, ROWS, World, composite, nested
from tests.support.emulator.emulator_driver import CREDENTIALS

_NUMBERS = (0, 1, -1, 2, 5, 100, 168, 169, 2**31 - 1, -(2**31), 2**32 - 1, 10**12, INT_MAX, INT_MIN, 2**64 - 1)
_TEXTS = ("", "a", "t", "w", "x" * 255, "x" * 256, "ключ", "a\0b", "a b", "#a", "-", "finished", "../t", "a\n", "%s{0}")
_OFTEN = {
    "PutRow": 12,
    "UpdateRow": 12,
    "BatchWriteRow": 16,
    "GetRow": 6,
    "GetRange": 6,
    "ReadRecords": 5,
    "Checkpoint": 5,
    "GetStreamRecord": 5,
    "Heartbeat": 5,
    "DeleteTable": 1,
}
#: Header, tags, and the first key column's name and length: how rows of one table begin.
_KEY_START = 13
_RANGE = {
    Field.TYPE_INT32: (-(2**31), 2**31 - 1),
    Field.TYPE_INT64: (INT_MIN, INT_MAX),
    Field.TYPE_SINT64: (INT_MIN, INT_MAX),
    Field.TYPE_UINT64: (0, 2**64 - 1),
}


class Case(NamedTuple):
    """One request to send; `path` is the signed one."""

    level: str
    path: str
    request: HttpRequest


class Mutator:
    """Mutates the samples of a world; `rng` determines the result."""

    def __init__(self, rng: random.Random, world: World, *, odd_paths: bool = True) -> None:
        self._rng = rng
        self._odd_paths = odd_paths
        self._world = world
        self._known = _texts_by_field(world)
        # An operation is chosen by its number of mutations, not by its number of samples.
        self._names = [
            name for name in sorted({sample.name for sample in world.samples}) for _ in range(_OFTEN.get(name, 2))
        ]
        self._by_name = {name: [one for one in world.samples if one.name == name] for name in self._names}
        self._every = sorted({text for texts in self._known.values() for text in texts})

    def case(self) -> Case:
        """Make the next request."""
        rng = self._rng
        sample = rng.choice(self._by_name[rng.choice(self._names)])
        level = rng.choices(tuple(_LEVELS), weights=tuple(weight for weight, _ in _LEVELS.values()))[0]
        message = type(sample.message).FromString(sample.message.SerializeToString())
        body = _LEVELS[level][1](self, message)
        path = sample.path
        if level == "valid" and rng.random() < 0.1:
            path = rng.choice(tuple(OPERATIONS_BY_PATH))
        return Case(level, path, self._signed(path, body))

    def _signed(self, path: str, body: bytes) -> HttpRequest:
        rng = self._rng
        extra: dict[str, str] = {}
        if rng.random() < 0.05:
            body, extra = _compressed(rng, body)
        if rng.random() < 0.05:
            extra["x-ots-response-compress-type"] = "deflate"
        request = build_request(
            OPERATIONS_BY_PATH[path],
            body,
            instance="demo",
            credentials=CREDENTIALS,
            now=self._world.driver.clock.now(),
            trace_id="t",
        )
        headers = {**request.headers, **extra}
        del headers["x-ots-signature"]
        if rng.random() < 0.05:
            headers |= {"x-ots-signdate": "20231114", "x-ots-signregion": "cn-hangzhou"}
            headers["x-ots-signaturev4"] = sign_v4(path, headers, SECRET)
        else:
            headers["x-ots-signature"] = sign_v2(path, headers, SECRET)
        if rng.random() < 0.03:
            path, headers = _wrong_headers(rng, path, headers, _PATHS if self._odd_paths else _PATHS[:4])
        return HttpRequest(path, headers, body)

    # Levels

    def valid(self, message: Message) -> bytes:
        return message.SerializeToString()

    def meaning(self, message: Message) -> bytes:
        for _ in range(self._rng.randint(1, 3)):
            self._change_field(message)
        return message.SerializePartialToString()

    def rows(self, message: Message) -> bytes:
        """Replace a row, key or filter of the message by a changed one."""
        holders = [(owner, field) for owner, field in _fields(message) if field.type == Field.TYPE_BYTES]
        if not holders:
            return self.meaning(message)
        filled = [(owner, field) for owner, field in holders if getattr(owner, field.name)]
        owner, field = self._rng.choice(filled if filled and self._rng.random() < 0.8 else holders)
        self._set(owner, field, self._bytes(field.name, getattr(owner, field.name)))
        return message.SerializePartialToString()

    def wire(self, message: Message) -> bytes:
        body = message.SerializeToString()
        for _ in range(self._rng.randint(1, 2)):
            body = mutate_fields(self._rng, body)
        return body

    def bits(self, message: Message) -> bytes:
        return mutate_bytes(self._rng, message.SerializeToString())

    def _change_field(self, message: Message) -> None:
        rng = self._rng
        fields = list(_fields(message))
        if not fields:
            return
        owner, field = rng.choice(fields)
        if rng.random() < 0.1:
            owner.ClearField(field.name)
        elif field.message_type is not None:
            self._change_message(owner, field)
        else:
            self._set(owner, field, self._value(field))

    def _change_message(self, owner: Message, field: Field) -> None:
        rng = self._rng
        value = getattr(owner, field.name)
        if isinstance(value, Message):
            value.SetInParent()
        elif value and rng.random() < 0.7:
            value.add().CopyFrom(rng.choice(value))
            if rng.random() < 0.05:
                value.extend([value[0]] * rng.choice((10, 100, 201)))
        else:
            value.add()

    def _set(self, owner: Message, field: Field, value: Any) -> None:
        if field.label != Field.LABEL_REPEATED:
            setattr(owner, field.name, value)
            return
        values = getattr(owner, field.name)
        if values and self._rng.random() < 0.5:
            values[self._rng.randrange(len(values))] = value
        else:
            values.extend([value] * self._rng.choice((1, 1, 2, 101)))

    def _value(self, field: Field) -> Any:
        rng = self._rng
        if field.type == Field.TYPE_STRING:
            return self._text(field.name)
        if field.type == Field.TYPE_BYTES:
            return self._bytes(field.name)
        if field.type == Field.TYPE_BOOL:
            return rng.random() < 0.5
        if field.enum_type is not None:
            return rng.choice(field.enum_type.values).number
        low, high = _RANGE[field.type]
        return min(max(rng.choice(_NUMBERS), low), high)

    def _text(self, name: str) -> str:
        rng = self._rng
        if name in ("token", "checkpoint", "shard_iterator") and rng.random() < 0.7:
            return self._token()
        known = self._known[name] if rng.random() < 0.5 else self._every
        return rng.choice(known) if known and rng.random() < 0.6 else rng.choice(_TEXTS)

    def _token(self) -> str:
        """A token of some channel, unchanged or with changed content."""
        rng = self._rng
        token = rng.choice(self._world.tokens)
        if token == "finished" or rng.random() < 0.3:
            return token
        outer = tunnel_pb2.Token.FromString(base64.b64decode(token))
        content = tunnel_pb2.TokenContentV2.FromString(outer.content)
        match rng.randrange(5):
            case 0:
                content.total_count = rng.choice((INT_MAX, INT_MIN, -1, 2**32))
            case 1:
                content.timestamp = rng.choice((INT_MAX, INT_MIN, -1))
            case 2:
                owner = content.iterator.rpartition(":")[0]
                position = ("9" * 5000, "-1", "0", "1e9", "", "\u0663", str(2**63), "99")
                content.iterator = f"{owner}:{rng.choice(position)}"
            case 3:
                content.primary_key = mutate_row(rng, rng.choice(ROWS)).encode()
            case _:
                outer.version = rng.choice((0, 1, 3, INT_MAX))
        outer.content = content.SerializeToString()
        body = outer.SerializeToString()
        return base64.b64encode(body if rng.random() < 0.8 else mutate_fields(rng, body)).decode()

    def _bytes(self, name: str, old: Any = b"") -> bytes:
        rng = self._rng
        if name in ("filter", "column_condition"):
            body = self._filter().SerializePartialToString()
            return body if rng.random() < 0.6 else mutate_fields(rng, body)
        if name in ROW_FIELDS or rng.random() < 0.5:
            row = rng.choice(_rows_like(old) if rng.random() < 0.8 else ROWS)
            for _ in range(rng.choice((0, 1, 1, 1, 2))):
                row = mutate_row(rng, row)
            body = row.encode()
            return body if rng.random() < 0.9 else mutate_bytes(rng, body)
        return rng.randbytes(rng.randrange(20))

    def _filter(self) -> Message:
        rng = self._rng
        found = rng.choice(FILTERS)
        match rng.randrange(6):
            case 0:
                return composite(rng.choice(("LO_NOT", "LO_AND", "LO_OR")), *rng.choices(FILTERS, k=rng.randrange(4)))
            case 1 if rng.random() < 0.1:
                return nested(rng.choice((20, 100, 500)))
            case 2:
                copy = type(found).FromString(found.SerializeToString())
                copy.filter = mutate_fields(rng, found.filter)
                return copy
            case _:
                return found


#: Level -> how often, and how.
_LEVELS: dict[str, tuple[int, Callable[[Mutator, Any], bytes]]] = {
    "valid": (6, Mutator.valid),
    "meaning": (28, Mutator.meaning),
    "rows": (46, Mutator.rows),
    "wire": (15, Mutator.wire),
    "bits": (5, Mutator.bits),
}


def _rows_like(old: Any) -> tuple[WireRow, ...]:
    """The rows with the partition key of the row they replace."""
    first = old[0] if isinstance(old, Sequence) and not isinstance(old, bytes) and old else old
    if not isinstance(first, bytes) or len(first) < _KEY_START:
        return ROWS
    return tuple(row for row in ROWS if row.encode()[:_KEY_START] == first[:_KEY_START]) or ROWS


def _fields(message: Message) -> Iterator[tuple[Message, Field]]:
    """Every set or unset field of a message and of its nested messages."""
    for field in message.DESCRIPTOR.fields:
        yield message, field
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in (value,) if isinstance(value, Message) else value:
                yield from _fields(item)


def _texts_by_field(world: World) -> dict[str, list[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for sample in world.samples:
        for owner, field in _fields(sample.message):
            if field.type == Field.TYPE_STRING:
                value = getattr(owner, field.name)
                found[field.name].update((value,) if isinstance(value, str) else value)
    return defaultdict(list, {name: sorted(texts) for name, texts in found.items()})


def _compressed(rng: random.Random, body: bytes) -> tuple[bytes, dict[str, str]]:
    plain, body = body, zlib.compress(body)
    if rng.random() < 0.5:
        body = mutate_bytes(rng, body)
    size = rng.choice((str(len(plain)), "0", "-1", "many"))
    return body, {"x-ots-request-compress-type": "deflate", "x-ots-request-compress-size": size}


_HEADER_VALUES = (
    "",
    " ",
    "x",
    "\udcff",
    "ключ",
    "2015-12-31",
    "9" * 400,
    "a:b",
    "2026-99-99T00:00:00Z",
    "1B2M2Y8AsgTpgAmY7PhCfg==",
)


#: The first ones are such as any HTTP client can send.
_PATHS = (
    "/Nothing",
    "/ListSearchIndex",
    "/SQLQuery",
    "/a/b/ListTable",
    "/",
    "",
    "//",
    "/\udcff",
    "/x\n",
    "/" + "x" * 9000,
)


def _wrong_headers(
    rng: random.Random, path: str, headers: dict[str, str], paths: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Change a header or the path; half of the time the signature is right again afterwards."""
    name = rng.choice([*headers, "x-ots-ststoken", "x-ots-unknown", "x-ots-request-compress-type"])
    match rng.randrange(4):
        case 0:
            headers.pop(name, None)
        case 1:
            path = rng.choice(paths)
        case _:
            headers[name] = rng.choice(_HEADER_VALUES)
    if rng.random() < 0.5 and "\udcff" not in path + "".join(headers.values()):
        headers.pop("x-ots-signature", None)
        headers["x-ots-signature"] = sign_v2(path, headers, SECRET)
    return path, headers


def with_body(request: HttpRequest, body: bytes) -> HttpRequest:
    """The request with another body and its correct digest and signature."""
    headers = {**request.headers, "x-ots-contentmd5": content_md5(body)}
    headers["x-ots-signature"] = sign_v2(request.path, headers, SECRET)
    return HttpRequest(request.path, headers, body)
