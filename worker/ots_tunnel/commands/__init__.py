"""Subcommands of `ots-tunnel`, one module each; `ots_tunnel.cli` lists them."""
