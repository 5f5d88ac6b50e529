"""The worker as probes, scrapers and the operator see it: `/channels`, `/metrics`, `/healthz`, `/readyz`."""
