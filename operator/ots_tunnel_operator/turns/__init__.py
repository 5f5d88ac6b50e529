"""Turns of passes and of calls to instances, and what is known of an instance that does not answer.

Theory of operation
-------------------
Many objects share an instance, and all objects share the process. One instance that is silent must cost neither:

    turn of a pass     lent to other passes while a pass waits for an instance (`passes.PassTurn`)
    turn of a call     at most CALLS calls to an instance at once (`queue.Turns`)
    circuit            after a call without an answer one call at a time, the probe, finds out whether the instance
                       answers; the calls of all other objects await it, and fail with it or go on (`circuit.Circuit`)
    patience           a pass waits PATIENCE_SECONDS for turns, all its calls together; then its object was not
                       observed (`queue.Patience`, `queue.NoTurn`)

A call counts as unanswered only if the instance answered no other call meanwhile: one slow call says nothing about an
instance that works. What a call is about, such as the tunnels of a table, has a circuit of its own: where these calls
alone have no answer, they occupy one turn, and the others are as fast as before.

For the same reason the wait for a turn is no evidence of silence as long as the instance answers anything. Then a long
queue is the operator's own: more objects than it can look at in time. Their status says so, and who has waited longest
goes first, also after a pass that has given up. A place is lost by an answer, or by a call without one, so that calls
which fail do not keep others waiting.

Example: 120 objects, packets to their instance are dropped. Eight calls fail after 10 s; the ninth is the probe, fails
after 10 s, and all others fail with it. From now on each pass waits for a probe. With an instance that answers each
call in 0.2 s, CALLS at once are 40 calls a second, so 1,800 in the 45 s of a poll and a patient pass. A pass needs up
to three, for tunnel, source table and destination. So 600 objects are observed in time; of 1,000 each is observed about
every 50 s, in two passes, and is Unknown from the end of the first one until then.
"""
