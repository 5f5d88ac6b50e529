"""Main application file of the SparkApplication that follows changes: local:///opt/ots/stream.py."""

import sys

from ots_tunnel.spark.query.driver import main

sys.exit(main())
