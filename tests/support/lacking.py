"""What a test needs and this machine lacks: a reason to skip the test, except where the test command installs it.

`tests.suite` names in the environment what it has installed, or installs on the way. A test that misses such a program
fails: the installation is broken, and a skip would hide that.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

#: Environment variable with the names, separated by blanks.
INSTALLED = "OTS_TUNNEL_INSTALLED"


def lack(program: str, reason: str) -> NoReturn:
    """End the test, because a program is missing.

    Args:
        program: its name in the environment: java, javac, browser, network, go, nodejs, compiler, kubernetes.
        reason: what is missing, and what installs it.
    """
    if program in os.environ.get(INSTALLED, "").split():
        pytest.fail(f"{reason}; the test command installs it", pytrace=False)
    pytest.skip(reason)
