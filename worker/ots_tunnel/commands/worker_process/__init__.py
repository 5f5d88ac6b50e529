"""The process of a worker, of a tunnel (`ots-tunnel run`) or of shards (`ots-tunnel stream run`).

options              the options that both commands have
checked_document     reads the document by another process, `check`, which ends before the worker begins
process              runs a worker, and ends the process with its exit code
serving              the worker beside its status server, and the signals that stop it
ending               exit code and termination message where no error ends it
last_resort          ends a process whose end takes too long
noticed_signals      signals that come while the event loop hangs
termination_message  the line that the pod keeps
leaving              the end of the process itself
"""
