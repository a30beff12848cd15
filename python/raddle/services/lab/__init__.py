"""A virtual cluster on one Linux machine, for tests, benchmarks and newcomers.

Hosts and switches are namespaces (network, host name, IPC, mounts) joined by veth links. Nothing
but processes keeps them alive: whoever kills the processes of a lab removes its namespaces, links,
queueing disciplines, shared memory and BPF programs. All processes of a lab are in one control
group, so they are found again whatever has happened to the programs that started them.

- `topology`: names, addresses and links of a lab; no system call
- `cgroups`, `namespaces`, `network`, `processes`, `reach`: what the kernel does for us
- `switches`: the back-ends, a bridge or `raddle-switch`
- `state`: what is noted of a lab, and who may change it when
- `mpi`: `mpirun` inside
- `virtual`: the life of a lab
"""

from raddle.lab.topology import Backend, LabSpec, Mode, Topology
from raddle.lab.virtual import Lab

__all__ = ["Backend", "Lab", "LabSpec", "Mode", "Topology"]
