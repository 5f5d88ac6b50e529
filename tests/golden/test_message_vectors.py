"""Messages and tokens, byte for byte; the generated modules against their .proto files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

import ots_tunnel.protocol
from ots_tunnel.model import Channel, ChannelId, ChannelStatus, Token
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.http.rpc import error_body
from ots_tunnel.protocol.messages import channels_from_wire, channels_to_wire
from ots_tunnel.protocol.token import TokenContent, build_token, parse_token
from tests.support import vectors

LIVE_BASE = Token("CAISIQoddQAAAAEDBAMAAABrZXkFBgAAAAMBAAAANQogCa4gAA==")
LIVE_STREAM = Token(
    "CAISmwESlAFHWFJsYzNSZmRIaHVYekUxTlRRek5EZzJOREV6TWprME1qRTFORGczTTJGbE5UUXRNRFZrTUMwME9XSTVMV0kwTkRBdE1ESTBN"
    "amMzTWpnd09HSXhYekUxTlRRek5EZzJOREV6TWprME1qRWNBUUFBQUFBQUFBQTNsZ0FBQUFBQUFBQUFBQUQvLy8vLy8vLy9mNEU9GAAgAA=="
)


def test_heartbeat_response() -> None:
    channel = Channel(ChannelId("BaseData_0"), 1, ChannelStatus.OPEN)

    message = tunnel_pb2.HeartbeatResponse(channels=channels_to_wire([channel]))

    assert message.SerializeToString().hex() == "0a100a0a42617365446174615f3010011801"
    assert channels_from_wire(message.channels) == (channel,)


def test_error_body_has_two_fields() -> None:
    body = error_body("OTSResourceGone", "[tunnelservice] client not exist")

    assert body.hex() == (
        "0a0f4f54535265736f75726365476f6e6512205b74756e6e656c736572766963655d20636c69656e74206e6f74206578697374"
    )


def test_base_token_of_the_live_service() -> None:
    content = parse_token(LIVE_BASE)

    assert content == TokenContent(2, primary_key=vectors.KEY_ONLY.wire)
    assert build_token(content) == LIVE_BASE


def test_stream_token_of_the_live_service() -> None:
    content = parse_token(LIVE_STREAM)

    assert (content.version, content.primary_key, content.timestamp, content.total_count) == (2, None, 0, 0)
    assert len(content.iterator) == 148
    assert build_token(content) == LIVE_STREAM


@pytest.mark.parametrize(
    ("content", "token"),
    [
        (TokenContent(2, iterator="it:50", total_count=50), "CAISCxIFaXQ6NTAYACAy"),
        (TokenContent(1, iterator="it:50"), "CAESCRIFaXQ6NTAYAA=="),
    ],
    ids=["version 2", "version 1"],
)
def test_synthetic_tokens(content: TokenContent, token: str) -> None:
    assert build_token(content) == token
    assert parse_token(Token(token)) == content


Schema = dict[str, dict[str, tuple[int, str]]]

_SCALARS = {
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_INT32: "int32",
    FieldDescriptorProto.TYPE_INT64: "int64",
    FieldDescriptorProto.TYPE_UINT64: "uint64",
    FieldDescriptorProto.TYPE_SINT64: "sint64",
}
_LABELS = {1: "optional", 2: "required", 3: "repeated"}


def schema_of_module(serialized: bytes) -> Schema:
    """Every message and enum of a generated module as {name: {field: (number, declaration)}}."""
    found: Schema = {}

    def visit(messages: list[object], prefix: str) -> None:
        for message in messages:
            name = f"{prefix}{message.name}"
            found[name] = {}
            for field in message.field:
                kind = _SCALARS.get(field.type) or field.type_name.rsplit(".", 1)[-1]
                found[name][field.name] = (field.number, f"{_LABELS[field.label]} {kind}")
            visit(list(message.nested_type), f"{name}.")

    file = FileDescriptorProto.FromString(serialized)
    visit(list(file.message_type), "")
    for enum in file.enum_type:
        found[enum.name] = {value.name: (value.number, "enum") for value in enum.value}
    return found


def schema_of_proto(text: str) -> Schema:
    """The schema in a .proto file, in the same form; syntax that our files do not use raises."""
    found: Schema = {}
    path: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("//", 1)[0].strip()
        if opened := re.fullmatch(r"(message|enum) (\w+) \{(\})?", line):
            found[".".join([*path, opened[2]])] = {}
            if not opened[3]:
                path.append(opened[2])
        elif line == "}":
            path.pop()
        elif field := re.fullmatch(r"(optional|required|repeated) (\w+) (\w+) = (\d+);", line):
            found[".".join(path)][field[3]] = (int(field[4]), f"{field[1]} {field[2]}")
        elif value := re.fullmatch(r"(\w+) = (\d+);", line):
            found[".".join(path)][value[1]] = (int(value[2]), "enum")
        elif line and not re.fullmatch(r"(syntax|package|reserved) ?.*;", line):
            raise ValueError(f"line {number}: {raw!r} is not understood")
    return found


@pytest.mark.parametrize("module", [tunnel_pb2, table_pb2], ids=["tunnel", "table"])
def test_a_generated_module_equals_its_proto_file(module: object) -> None:
    descriptor = module.DESCRIPTOR
    proto = Path(ots_tunnel.protocol.__path__[0]) / Path(descriptor.name).name

    assert schema_of_module(descriptor.serialized_pb) == schema_of_proto(proto.read_text())


@pytest.mark.parametrize("module", [tunnel_pb2, table_pb2], ids=["tunnel", "table"])
def test_no_error_has_a_third_field(module: object) -> None:
    assert [field.number for field in module.Error.DESCRIPTOR.fields] == [1, 2]
