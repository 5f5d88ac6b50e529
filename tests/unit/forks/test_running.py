"""A run whose process is forked: what a child may not do of what its parent does."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ots_tunnel.console.exit_codes import OTHER_ERROR
from tests.support.programs.processes import bare_environment

BEGIN = """
import asyncio, gc, os, signal, sys
from ots_tunnel.forks.running import run

os.register_at_fork(after_in_child=lambda: signal.alarm(60))

def status_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def output(program: str) -> str:
    """What a program prints that ends with exit code 0."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGIN + program],
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


DUE = """
def fork():
    child = os.fork()
    if child:
        print(status_of(child), flush=True)

async def main():
    loop = asyncio.get_running_loop()
    loop.call_soon(fork)
    loop.call_soon(lambda: print("due", flush=True))
    for _ in range(3):
        await asyncio.sleep(0)

run(main())
"""


def test_callbacks_that_are_due_run_in_the_parent_alone() -> None:
    assert output(DUE) == f"{OTHER_ERROR}\ndue\n"


CONNECTION = """
async def main():
    received = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        received.set_result(await reader.read())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                writer.write(b"of the child")
            except Exception:  # whatever the cut-off copy of the connection says
                pass
            os.write(writing, b"x")
            signal.pause()
        os.read(reading, 1)
        writer.write(b"of the parent")
        writer.close()  # it ends the connection although the child lives
        print((await asyncio.wait_for(received, 10)).decode())
        os.kill(child, signal.SIGTERM)
        print(status_of(child))

run(main())
"""


def test_a_child_has_none_of_the_connections() -> None:
    assert output(CONNECTION) == f"of the parent\n{-signal.SIGTERM}\n"


PAUSED = """
async def main():
    async def serve(reader, writer):
        writer.write(b"x" * (1 << 20))
        received.set_result(await reader.read())
        writer.close()

    received = asyncio.get_running_loop().create_future()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1024)
        while not reader._paused:
            await asyncio.sleep(0.01)
        child = os.fork()
        if not child:
            try:
                writer.write(b"of the child")
            except Exception:  # whatever the cut-off copy of the connection says
                pass
            os._exit(0)
        status_of(child)
        writer.write_eof()
        print(await asyncio.wait_for(received, 10))

run(main())
"""


def test_a_child_has_no_connection_whose_reader_is_slow_either() -> None:
    assert output(PAUSED) == "b''\n"


OWN = """
async def main():
    loop = asyncio.get_running_loop()
    await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        reading, writing = os.pipe()
        loop.add_reader(reading, lambda: None)
        child = os.fork()
        if not child:
            writer.close()
            loop.remove_reader(reading)
            os.write(1, os.read(reading, 100))
            os._exit(0)
        os.write(writing, b"read in the child")
        assert status_of(child) == 0

run(main())
"""


def test_a_child_keeps_its_output_and_pipes_and_may_close_its_copies() -> None:
    assert output(OWN) == "read in the child"


REUSED = """
import socket

async def main():
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        number = writer.get_extra_info("socket").fileno()
        ours, childs = socket.socketpair()
        writer.close()
        await writer.wait_closed()
        os.dup2(childs.fileno(), number)  # as a pipe of multiprocessing may get it
        child = os.fork()
        if not child:
            os.write(number, b"of the child")
            os._exit(0)
        print(status_of(child), ours.recv(100))

run(main())
"""


def test_a_child_keeps_a_socket_with_the_number_of_a_closed_connection() -> None:
    assert output(REUSED) == "0 b'of the child'\n"


LISTENING = """
import socket

async def main():
    listening = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    address = listening.sockets[0].getsockname()
    answering = socket.create_server(("127.0.0.1", 0))
    asked = socket.socket()
    asked.setblocking(False)
    await asyncio.get_running_loop().sock_connect(asked, answering.getsockname())
    waiting = asyncio.create_task(asyncio.get_running_loop().sock_recv(asked, 1))
    await asyncio.sleep(0)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"x")
        signal.pause()
    os.read(reading, 1)
    listening.close()
    waiting.cancel()
    asked.close()
    print(answering.accept()[0].recv(1))
    try:
        socket.create_connection(address)
    except ConnectionRefusedError:
        print("refused")
    os.kill(child, signal.SIGTERM)
    status_of(child)

run(main())
"""


def test_a_child_has_no_socket_that_the_loop_waits_for() -> None:
    assert output(LISTENING) == "b''\nrefused\n"


THREAD = """
def work():
    child = os.fork()
    return child and status_of(child)

async def main():
    print(await asyncio.to_thread(work))

run(main())
"""


def test_a_child_that_leaves_a_function_in_a_thread_ends() -> None:
    assert output(THREAD) == f"{OTHER_ERROR}\n"


CLOSING = """
children = []

async def other():
    try:
        await asyncio.sleep(3600)
    finally:
        children.append(os.fork())

async def main():
    children.append(asyncio.create_task(other()))
    await asyncio.sleep(0)

run(main())
print("behind the run", status_of(children[1]), flush=True)
"""


def test_a_child_that_is_forked_while_the_run_ends_does_not_go_on_behind_it() -> None:
    assert output(CLOSING) == f"behind the run {OTHER_ERROR}\n"


HANDLERS = """
def handle(number, frame):
    os._exit(7)

signal.signal(signal.SIGTERM, handle)

async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print, "a signal of the child")
    child = os.fork()
    if not child:
        signal.pause()
    os.kill(child, signal.SIGTERM)
    print(status_of(child))
    await asyncio.sleep(0.1)

run(main())
"""


def test_a_child_has_the_handlers_from_before_the_run() -> None:
    assert output(HANDLERS) == "7\n"


IGNORING = """
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as programs do around the start of a pool
    child = os.fork()
    if not child:
        os._exit(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)
    signal.signal(signal.SIGINT, former)
    print(status_of(child))

run(main())
"""


def test_a_child_keeps_the_handlers_that_the_users_code_has_set() -> None:
    assert output(IGNORING) == "1\n"


DESTROYED = """
async def other():
    try:
        while True:
            await asyncio.sleep(0)
    finally:
        print("its end", flush=True)

async def main():
    asyncio.create_task(other())
    await asyncio.sleep(0)
    child = os.fork()
    if not child:
        gc.collect()
        os._exit(0)
    print(status_of(child), flush=True)

run(main())
"""


def test_no_task_of_the_parent_has_its_end_in_a_child() -> None:
    assert output(DESTROYED) == "0\nits end\n"


CHAINED = """
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print, "a signal of the child")
    former = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *given: former(*given))
    child = os.fork()
    if not child:
        signal.pause()
    os.kill(child, signal.SIGTERM)
    print(status_of(child))

run(main())
"""


def test_a_child_ends_by_sigterm_where_the_users_code_calls_the_runs_handler() -> None:
    assert output(CHAINED) == f"{-signal.SIGTERM}\n"


POLICY = """
class Loop(asyncio.SelectorEventLoop):
    pass

class Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = Loop

async def main():
    print(type(asyncio.get_running_loop()).__name__, asyncio.get_event_loop_policy().get_event_loop() is not None)

run(main())
asyncio.set_event_loop_policy(Policy())
run(main())
"""


def test_a_policy_of_the_users_chooses_the_loop_and_knows_it() -> None:
    assert output(POLICY) == "StayingLoop True\nLoop True\n"


RUNNING = """
async def main():
    loop = asyncio.get_running_loop()
    try:
        run(asyncio.sleep(0))
    except RuntimeError as error:
        print(error)
    print(asyncio.get_event_loop_policy().get_event_loop() is loop)

run(main())
"""


def test_a_run_inside_another_one_is_refused_and_leaves_it_alone() -> None:
    told = "an event loop runs in this thread already: await the coroutine form of this call"
    assert output(RUNNING) == f"{told}\nTrue\n"


DESTROYING = """
import types
from ots_tunnel.forks.ending import leaving_ends_a_child

@types.coroutine
def pause():
    yield

async def waiting():
    with leaving_ends_a_child(awaits=True):
        await pause()

def function():
    with leaving_ends_a_child():
        raise GeneratorExit

async def main():
    child = os.fork()
    if not child:
        ours.close()
        os._exit(0)
    print(status_of(child))
    child = os.fork()
    if not child:
        function()
    print(status_of(child))
    ours.close()

ours = waiting()
ours.send(None)
run(main())
"""


def test_a_coroutine_that_is_destroyed_in_a_child_does_not_end_it_and_a_function_does() -> None:
    assert output(DESTROYING) == f"0\n{OTHER_ERROR}\n"


LEAVING = """
import logging

def failing(record):
    raise ValueError

async def main():
    child = os.fork()
    if not child:
        {leaves}
    print(status_of(child))

run(main())
"""


@pytest.mark.parametrize(
    ("leaves", "code"),
    [
        ("return", OTHER_ERROR),
        ("raise ValueError", OTHER_ERROR),
        ("await asyncio.sleep(3600)", OTHER_ERROR),
        ("sys.exit(3)", 3),
        ("sys.exit()", 0),
        ("sys.exit(0x107)", 7),
        ("logging.getLogger('ots_tunnel.forks.ending').addFilter(failing); return", OTHER_ERROR),
    ],
)
def test_a_child_that_goes_on_in_a_coroutine_ends(leaves: str, code: int) -> None:
    assert output(LEAVING.format(leaves=leaves)) == f"{code}\n"


INTERRUPTED = """
async def main():
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, b"x")
            signal.pause()
        except KeyboardInterrupt:
            os._exit(9)
    os.read(reading, 1)
    os.kill(child, signal.SIGINT)
    print(status_of(child))

run(main())
"""


def test_a_child_is_interrupted_as_other_processes() -> None:
    """The run's own handler would cancel its task, which is not the child's."""
    assert output(INTERRUPTED) == "9\n"
