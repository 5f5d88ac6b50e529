"""What stands in for the machines of a region: their processes, clocks, event loop and network."""
