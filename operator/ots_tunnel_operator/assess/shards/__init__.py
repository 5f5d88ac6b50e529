"""What is wrong with the stream, or with the table of leases, of an object without a tunnel. Pure."""
