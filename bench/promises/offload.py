# ruff: noqa: D103 (the promise above a function says what it measures)
"""In-network Allreduce: bits, faults, speed."""

from pathlib import Path

from bench.promises import Outcome, cargo_test, compared, promise, python_tests

ALL = ("-m", "scale or not scale")
"""Quick and long tests of a file."""


@promise(
    "offload, bits of plain MPI at 16 hosts",
    "pytest -m scale tests/mpi/test_sixteen_hosts.py",
    "0 differ; C, Fortran; Node, Socket; sockets, XDP; MPICH at 2 and 4 ranks",
    minutes=25,
)
def offload_bits(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_sixteen_hosts.py", *ALL)


@promise(
    "offload, orders of plain MPI",
    "pytest tests/mpi/test_order.py, quick and long",
    "0 differ; Open MPI to 16 ranks, MPICH to 4",
    minutes=10,
)
def offload_orders(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_order.py", *ALL)


@promise(
    "offload, mpi4py's own tests",
    "pytest -m scale tests/mpi/test_mpi4py.py (2, 3, 4 ranks)",
    "the same passes and skips with and without",
    minutes=20,
)
def offload_mpi4py(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_mpi4py.py", *ALL)


@promise(
    "offload, switches and ranks that die",
    "pytest tests/mpi/test_faults.py, quick and long",
    "right results, no hang, state free within the lease",
    minutes=30,
)
def offload_faults(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_faults.py", *ALL)


@promise(
    "offload, loss, duplication, reordering",
    "pytest -m scale tests/net/test_rounds.py",
    "10^6 rounds at 1 %, 10^5 at 10 %: all sums right",
    minutes=30,
)
def offload_loss(_: Path) -> Outcome:
    return python_tests("tests/net/test_rounds.py", "-m", "scale")


@promise(
    "offload, random schedules",
    "cargo test -p raddle-offload --test schedules -- --ignored",
    "100,000 schedules: every sum exact, every slot freed",
    minutes=8,
)
def offload_schedules(_: Path) -> Outcome:
    return cargo_test("offload", "schedules", "--", "--ignored")


@promise(
    "offload, program in the kernel and core",
    "cargo test -p raddle-switch --test xdp a_million_random -- --ignored",
    "10^6 sequences: equal bytes, state, actions",
    minutes=15,
)
def offload_kernel(_: Path) -> Outcome:
    return cargo_test("switch", "xdp", "a_million_random", "--", "--ignored")


@promise(
    "offload, forged and hostile packets",
    "cargo test -p raddle-offload --test hostile -- --include-ignored",
    "5 x 10^7 packets change no group, no memory",
    minutes=8,
)
def offload_hostile(_: Path) -> Outcome:
    return cargo_test("offload", "hostile", "--", "--include-ignored")


@promise(
    "offload, eight jobs under quotas",
    "pytest tests/net/test_jobs.py, quick and long",
    "slots of the dead are free within the lease",
    minutes=2,
)
def offload_jobs(_: Path) -> Outcome:
    return python_tests("tests/net/test_jobs.py", *ALL)


@promise(
    "offload, nothing stays of a lab",
    "pytest tests/lab/test_cleanup.py (kill -9 of anything)",
    "no namespace, qdisc, BPF program, cgroup, shared memory",
)
def offload_cleanup(_: Path) -> Outcome:
    return python_tests("tests/lab/test_cleanup.py", *ALL)


@promise(
    "offload, faster than plain MPI",
    "python3 -m bench.mpi",
    "Allreduce >= 1.8, 2, 3x at 4, 9, 16 hosts, elsewhere >= 0.97; icoFoam >= 1.25, 1.8, 1.8x",
    minutes=70,
)
def offload_speed(folder: Path) -> Outcome:
    return compared(folder, "bench.mpi")
