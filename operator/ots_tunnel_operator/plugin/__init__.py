"""The kubectl plugin `kubectl ott`: what objects do and why, as text; and the few edits that a person makes by hand.

Theory of operation
-------------------
    kubectl    the only room with input and output to the cluster: it runs `kubectl` itself, so every way to log in that
               kubectl knows works here as well, and the plugin can do exactly what its caller may do
    ott        an object as the API server has it; `report` what a worker tells about its channels
    views      pure: object and reports in, lines out (`fleet`, `channels`, `why` and what it is made of)
    edits      pure: object in, patch and words out
    live       draws a view again and again; `terminal` is the only room that touches the terminal

It imports nothing but click and the operator's constants, so that it starts fast and fits into one archive
(`operator/build_plugin.py`). Unknown is shown as `-`, never as 0 (docs/architecture.md rule 11).
"""
