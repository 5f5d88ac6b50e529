"""Reading the world of one pass: children, pods, worker reports, source, sink and tunnel."""
