"""Number of examples of the property tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Examples are slow on a busy machine, which is no defect.
settings.register_profile("default-without-deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default-without-deadline")
