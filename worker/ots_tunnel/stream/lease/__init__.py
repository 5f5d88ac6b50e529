"""One lease: its values, its row, the changes that workers make to it, and their requests.

lease      the value
row        the row of the leases' table, as the vendor's Java library writes it
change     renew, take, steal, transfer, checkpoint, hand over, release: what each writes, and when it may
settling   whether a change that was not answered was made
requests   the calls' messages
"""
