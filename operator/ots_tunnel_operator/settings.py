"""What the operator process is told from outside; everything per tunnel is in the object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Process settings; flags and OTS_OPERATOR_* variables set them."""

    worker_image: str = ""
    """Image of worker pods where the object names none."""
    spark_image: str = ""
    """Image of Spark pods where the object names none."""
    image_pull_policy: str = "IfNotPresent"
    """Pull policy of every pod the operator renders."""
    poll_seconds: float = 15.0
    """Seconds between two DescribeTunnel calls for one object (one poller per tunnel, docs/architecture.md 6.1)."""
    wait_seconds: float = 2.0
    """Seconds between two looks while the service or Spark has to finish something."""
    gap_seconds: float = 1.0
    """Shortest pause between two passes over one object: events come in bursts."""
    status_seconds: float = 15.0
    """Figures are written at most so often; phase, replicas and conditions at once (docs/architecture.md rule 9)."""
    scrape_seconds: float = 2.0
    """Time a worker pod has to answer /channels; beyond it what it knows is unknown."""
    call_seconds: float = 10.0
    """Time one call to an instance may take before the pass reports it as unreachable."""
    refresh_seconds: float = 300.0
    """Schemas of both tables and Secrets are read again so often while nothing is wrong."""
    initialising_seconds: float = 300.0
    """A tunnel may stay in its first stage so long before the object says so (docs/architecture.md 3)."""
    spark_missing_seconds: float = 60.0
    """An application without a state for this long means that no Spark operator looks at it."""
    delete_seconds: float = 600.0
    """How long deletion tries to delete the tunnel before it leaves it behind (docs/architecture.md 3.6)."""
    backoff_seconds: float = 1.0
    """First pause after a failed pass; doubles."""
    backoff_max_seconds: float = 60.0
    """Longest pause after failed passes."""
