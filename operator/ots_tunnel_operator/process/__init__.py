"""What the operator's process sets in Python and in the system before it begins: depth of calls, size of reads."""
