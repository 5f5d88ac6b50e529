"""Processes that the user's code forks out of a worker, such as those of a `multiprocessing.Pool`.

Theory of operation. A forked process begins as a copy of the worker, in the middle of the user's code: it has the
worker's event loop, with callbacks that are due, its connections, and its handlers of signals. Of all these it may use
nothing: a request of the child would go to the service as the worker's, and what it reads of a connection the worker
misses. A child as `multiprocessing` makes it never leaves the user's code, and ends by itself. One of a bare `os.fork`
may return to the worker's code, and would be a second worker.

    signals   a child has the handlers from before the run, and its signals are not taken for the worker's
    loop      a child's copy of the loop calls nothing any more, and is cut off from the worker's connections
    ending    a child that leaves the user's code, by its return or an error, ends there
    running   runs a coroutine with all three

Example: a processor calls `os.fork()`, and the child returns from `process`. `ending` logs that and ends it with exit
code 5; no record is processed twice, and the worker goes on.
"""
