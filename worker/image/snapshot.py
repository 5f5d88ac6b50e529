"""The main application file of the snapshot: local:///opt/ots/snapshot.py."""

import sys

from ots_tunnel.spark.driver import main

sys.exit(main())
