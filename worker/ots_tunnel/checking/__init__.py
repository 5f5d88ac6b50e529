"""A worker's document is checked by a process of its own.

A worker runs for months, and checks its document once. What checks it, pydantic, the validators of the models and the
reader of YAML, would be a quarter of the memory of an idle worker until its end. So another process of the same
interpreter reads and checks the file, and hands the parts over:

    the worker                        python -m ots_tunnel.commands.worker_process.check tunnel worker.yaml

    `checked_document`       starts   reads the file, checks it with the models of pydantic
    objects of plain classes <----    pickled, by a pipe
    ConfigError              <----    or the text

Both processes import the same classes of `ots_tunnel.config`. They are made of what `config.modelling` has: in the
worker that is `plain_parts`, with the same fields, defaults, properties and equality, and without checks. Which of both
a process gets is decided before it first imports `ots_tunnel.config`, and stays.

Only the commands that are a worker's process do this. Every other one, and a program that has imported the models
already, checks documents by itself.
"""

from __future__ import annotations

#: Whether another process checks the document of this one; `checked_document` sets it.
is_apart = False
