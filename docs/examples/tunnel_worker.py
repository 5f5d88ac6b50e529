"""The example of the vendor's Go worker in Python: create a tunnel, print what it delivers.

python docs/examples/tunnel_worker.py ENDPOINT INSTANCE ACCESS_KEY_ID ACCESS_KEY_SECRET TABLE
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ots_tunnel import (
    ChannelContext,
    Credentials,
    Record,
    SimpleProcessorFactory,
    SyncTunnelClient,
    TunnelDaemon,
    TunnelType,
    TunnelWorkerConfig,
)


def example_consume_function(context: ChannelContext, records: Sequence[Record]) -> None:
    """Called with the records of one channel, in their order."""
    print("user-defined information", context.custom_value)
    for record in records:
        print("tunnel record detail:", record.action.name, record.primary_key, record.columns, flush=True)


def main(endpoint: str, instance: str, access_key_id: str, access_key_secret: str, table: str) -> None:
    client = SyncTunnelClient(endpoint, instance, Credentials(access_key_id, access_key_secret))
    names = {info.tunnel_name: info.tunnel_id for info in client.list_tunnels(table)}
    tunnel_id = names.get("exampleTunnel") or client.create_tunnel(table, "exampleTunnel", TunnelType.BaseAndStream)
    factory = SimpleProcessorFactory(example_consume_function, custom_value="user custom value")
    # Runs until SIGTERM or Ctrl-C: then what is being processed is finished and the checkpoints are stored.
    TunnelDaemon(client, tunnel_id, TunnelWorkerConfig(factory, heartbeat_interval=5, heartbeat_timeout=30)).run()
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
