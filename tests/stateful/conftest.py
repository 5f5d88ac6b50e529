"""How hard the property tests try."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine makes examples slow, which says nothing about them.
settings.register_profile("default-without-deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default-without-deadline")
