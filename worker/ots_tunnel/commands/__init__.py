"""Sub-commands of `ots-tunnel`, one module each; `ots_tunnel.cli` has the table."""
