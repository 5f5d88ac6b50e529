"""Sockets of `collect` in PySpark before 4.2, which leaves them to the garbage collector.

`_load_from_socket` returns the rows and drops the socket that they come from. Python warns of that some time later, and
here a warning is an error, of whichever test then runs. So such a socket is closed as soon as its file is made of it: a
socket that has a file stays open until the file is, and files end without a warning. Since 4.2 PySpark closes both.
"""

from __future__ import annotations

from typing import Any

import pyspark
from pyspark import util

from ots_tunnel.spark.versions import minor_of

#: The first minor that closes them.
CLOSED = (4, 2)


def close_with_file(patch: Any) -> None:
    """Make the sockets of `collect` end with their files, in the minors that leave them open.

    Args:
        patch: pytest's `MonkeyPatch`, which takes it back.
    """
    if minor_of(pyspark.__version__) >= CLOSED:
        return
    connect = util.local_connect_and_auth

    def closing(*arguments: Any) -> tuple[Any, Any]:
        file, connection = connect(*arguments)
        connection.close()
        return file, connection

    # the name in this module is used for what the driver reads alone; workers have imported their own
    patch.setattr(util, "local_connect_and_auth", closing)
