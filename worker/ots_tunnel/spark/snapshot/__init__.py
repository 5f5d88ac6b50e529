"""The driver program of a snapshot: copies the existing rows of a table.

`driver` is the program, `rounds` its jobs, `copying` their task, and `requests` the rows of its requests. `progress`
and `split_lists` are the record of what is copied.
"""
