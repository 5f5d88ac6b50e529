"""HTTP as the service speaks it: requests, signatures, responses, calls."""
