"""Tables of the emulator: rows, cells, expiry, change log and transactions."""
