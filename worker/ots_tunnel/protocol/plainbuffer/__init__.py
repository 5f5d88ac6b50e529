"""PlainBuffer, the encoding of rows: Python reference and compiled twin."""
