"""Generate the modules of the wire messages from their .proto files.

    uv run --isolated --no-project --python 3.11 --with grpcio-tools==1.62.3 --with "setuptools<81" \
        python tests/golden/generate_proto.py [directory]

Without a directory the committed modules are replaced. grpcio-tools 1.62.3 is the newest version whose output
loads on every protobuf runtime from 4.25 on; it pins protobuf below 5, so it never enters our own environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

WORKER = Path(__file__).resolve().parents[2] / "worker"
PROTOS = ("ots_tunnel/protocol/tunnel.proto", "ots_tunnel/protocol/table.proto")


def main(directory: Path) -> int:
    from grpc_tools import protoc  # only in the throw-away environment

    return int(
        protoc.main(
            ["protoc", f"--proto_path={WORKER}", f"--python_out={directory}", f"--pyi_out={directory}", *PROTOS]
        )
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else WORKER))
