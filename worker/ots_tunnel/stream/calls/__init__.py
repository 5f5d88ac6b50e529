"""The calls of a worker: the Stream API, and the table of leases.

client                `StreamClient`: the Stream API
answers               its answers as values
lease_table           `LeaseTable`: leases are listed, created, changed and deleted
lease_table_creation  the table comes into being
start_mark            the start of reading, while the first leases are created
older_records         whether a start leaves something out
former_streams        streams of the table that were followed before its present one
passing               whether a call that has failed may succeed later
"""
