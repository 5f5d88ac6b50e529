"""`python -m ots_tunnel` is `ots-tunnel`."""

from ots_tunnel.cli import main

if __name__ == "__main__":
    main()
