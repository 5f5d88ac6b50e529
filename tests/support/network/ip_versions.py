"""Tests that need both versions of IP on one socket."""

from __future__ import annotations

import socket

import pytest

#: A container may have version 6 switched off; that case has tests of its own (`tests.unit.test_listening`).
HAS_BOTH = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IP version 6")
