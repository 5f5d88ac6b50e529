"""The region in one process: deterministic simulation on virtual time, replayed by a seed.

Theory of operation
-------------------
One `VirtualLoop` runs everything and never waits: when no callback is ready, its clock moves to the next timer. The
service is the emulator, the workers are real ones with real sinks and the real HTTP transport; below it lies a
simulated network. The same seed gives the same story, byte by byte (`Outcome.digest`).

    determinism   clocks, chance and random bytes of the interpreter come from the process that asks
    loop          the event loop: order within a process as in asyncio, between processes by chance
    thread        a call in a thread, in turn with the loop; it may sleep
    process       one process: its clocks, its callbacks; killed, paused, or suspended with its machine
    network       hosts, paths, TCP with what a kernel does after its process has given up or died
    window        answers that come in pieces, and of which a process takes no more than it reads
    disk          what survives a loss of power; processes that end in the middle of a call
    seams         the functions of the product that are replaced: opening a socket, calls in threads, callbacks of users
    service       the emulator behind the network; witnesses of every executed call
    worker        a pod with a worker, started again when it ends
    oracles       truth at the source (history), ledger of calls; judges of deliveries and of the workers' status
    faults        what can go wrong, as data; the table of kinds
    scenario      what a seed stands for; as JSON it is a regression file
    endings       what users do when everything else is over
    region        puts all of it together and tells one story
    shrink        drops what a failing story does not need
    campaign      many seeds for a time
    command       the command line

`stories` lists the kinds of stories. All of them are the region above or a fleet, with something in another place:

    files         workers publish files, under filters that users change, on a disk that loses its power, fails, or ends
                  a process in the middle of a call
    replicate     users run the command, stop it, repeat it, and have to be refused
    fleet         Kubernetes: a model of the API server, controllers and kubelet; the real operator in kopf's role
    scaling       a fleet whose load changes, while the operator chooses the number of workers
    sleeping      a fleet of which no worker runs while nothing is to be read; the operator looks itself
    leases        no tunnel: workers share the shards of a stream by leases, beside a model of the Java library
    spark         a fleet whose existing rows a model of Spark copies, with the real record of progress
    replicas      a fleet whose operator has two replicas with the real leader election, of which one works

A story: tables and tunnel are made, pods start, writers write while faults happen. No fault begins after three quarters
of the length (of a fleet four fifths, or around the end time), and some last beyond the end of the writers. When they
are over, everything has to become right within `SETTLING`, stay right without a write for `QUIET` (`region` and `fleet`
have their own), and every worker has to drain and leave nothing behind. The first broken promise ends it.

How to add an actor. Code runs in a process if it was started by `Process.start`, or by anything that runs in one: it
inherits the context variable `determinism.CURRENT`. So make a `Process` (with its own `random.Random`, named after
the scenario's seed and the actor's name) and start a coroutine in it. It gets virtual time by `asyncio`, `time` and
`random` as they are, threads in turn with the loop (`loop.run_in_executor`, `DaemonThreads`), and connections by
`Network.open` to a `network.Host`, which is entered in `Network.hosts`; what opens sockets otherwise gets a seam.
What must not be killed or paused runs in `loop.region`, where `loop.after(seconds, callback)` schedules. Blocking
calls and own threads have to be replaced at their seam: a real thread would break the determinism. Restarts,
deletions and other orders to an actor are methods like those of `Pod`.

How to add a fault. A function and a row in `faults.KINDS`: how often it is drawn, how long it lasts, what it does.
A fault that lasts ends by itself, by `loop.after`. A fault is data, so that the shrinker can leave it out.

How to add an oracle. An object that calls `Region.violate(rule, text)`. It learns of executed calls as `ledger`
entries (`Telling.witness`), or looks from time to time (`Region._look`), or at the end (`Region._unfit` says what is
not as it has to be without faults). It must compare with the source (`History`) or the service's state, never with
what the product says of itself. A rule is a word or two; the shrinker keeps the rule while it shrinks.

    make simulate SEED=17            tells the story of a seed; shrinks it if it fails
    make simulate SEED=17 STEPS=3    with its first three faults
    .venv/bin/python -m tests.simulation campaign --seconds 60
"""
