"""Main application file of a snapshot's SparkApplication: local:///opt/ots/snapshot.py."""

import sys

from ots_tunnel.spark.snapshot.driver import main

sys.exit(main())
