"""`python -m ots_tunnel_operator.plugin`."""

from __future__ import annotations

from ots_tunnel_operator.plugin.command import main

if __name__ == "__main__":
    main()
