"""The sans-IO core: bytes, messages, signatures, tokens, schedules and the channel machine.

No module in here opens a socket, reads a clock, logs or draws a random number; time and entropy are arguments.
Worker, Spark source, operator and emulator are shells around it.
"""
