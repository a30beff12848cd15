"""Runs as threads of this process: alone in its folder, or one of several that share it."""

import time
from collections.abc import Sequence
from functools import partial

from raddle.results.owners import Claim, Claims
from raddle.services.engines.choice import Engine
from raddle.services.engines.work import (
    Ended,
    RunState,
    claimed_run,
    failure_of,
    job_of,
    longest_first,
)
from raddle.services.runner import Watch, first_failure, run_jobs

__all__ = ["simulate"]

WAIT_S = 0.5
"""What others are at is looked at so often."""


def simulate(
    states: Sequence[RunState], claims: Claims, engine: Engine, watch: Watch | None
) -> Ended:
    """Simulate what is missing of our part of the runs and what nobody else is at.

    Runs of owners that died are taken over. What is left in the end is done, or its owner was
    seen alive. An owner on another machine whose last sign of life is recent may be dead as
    well: it is waited for until it gives another one, or is known to be dead.
    """
    order = longest_first(states)
    mine = order if engine.shard is None else engine.shard.part(order)
    shard = None if engine.shard is None else str(engine.shard)
    alive = _Alive()
    cpu_s = 0.0
    if all(state.stats is not None for state in mine):
        return Ended()
    with claims.owner(shard) as owner:
        while True:
            left = [state for state in mine if not state.refresh()]
            found = {state.key: claims.last(state.key) for state in left}
            held = {
                key: claim
                for key, claim in found.items()
                if claim is not None and not claims.dead(claim, owner.now)
            }
            free = [state for state in left if state.key not in held]
            if not free:
                seen = [alive.seen(claim) for claim in held.values()]
                if all(seen):
                    return Ended(elsewhere=left, cpu_s=cpu_s)
                if _interrupted_wait():
                    return Ended(interrupted=True, elsewhere=left, cpu_s=cpu_s)
                continue
            threads = engine.threads_of_run(len(free))
            work = partial(claimed_run, simulate=engine.simulate)
            jobs = [job_of(state, partial(work, state, owner, threads)) for state in free]
            before = time.process_time()
            interrupted = run_jobs(jobs, engine.at_once(len(free)), watch=watch)
            cpu_s += time.process_time() - before
            failed = first_failure(jobs)
            if failed is not None or interrupted:
                failure = None if failed is None else failure_of(failed[0].name, failed[1])
                return Ended(failure, interrupted, cpu_s=cpu_s)
            # Others were faster everywhere: what they claimed may not be seen here yet.
            if all(job.answer is None for job in jobs) and _interrupted_wait():
                return Ended(interrupted=True, cpu_s=cpu_s)


def _interrupted_wait() -> bool:
    """Wait a little; whether Ctrl-C came."""
    try:
        time.sleep(WAIT_S)
    except KeyboardInterrupt:
        return True
    return False


class _Alive:
    """Which owners gave a sign of life since we look."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}

    def seen(self, claim: Claim) -> bool:
        """Whether the owner of a run is certainly alive."""
        if claim.process is None:
            return False
        return claim.process.here or claim.beat > self._first.setdefault(
            claim.process.token, claim.beat
        )
